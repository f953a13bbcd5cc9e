package sandbox

import "fmt"

// A Code says why a module was refused or a call ended before its program did.
type Code string

// The codes of the contract, and Cancelled of our own.
const (
	RuntimeUnavailable  Code = "RuntimeUnavailable"
	ModuleTooLarge      Code = "ModuleTooLarge"
	InvalidModule       Code = "InvalidModule"
	CompilationFailed   Code = "CompilationFailed"
	FuelExhausted       Code = "FuelExhausted"
	MemoryLimitExceeded Code = "MemoryLimitExceeded"
	ExecutionTimeout    Code = "ExecutionTimeout"
	HostCallDenied      Code = "HostCallDenied"
	WasmTrap            Code = "WasmTrap"
	GovernanceDenied    Code = "GovernanceDenied"
	Cancelled           Code = "Cancelled"
)

// An Error is a reasoned end: {"code", "message"}.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

func refuse(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}
