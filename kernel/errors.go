package kernel

import (
	"errors"
	"fmt"
)

// An ErrorKind is a class of errors that a caller tells apart.
type ErrorKind string

// The kinds of errors of the kernel.
const (
	ProcessNotFound        ErrorKind = "process_not_found"
	InvalidStateTransition ErrorKind = "invalid_state_transition"
	ProcessTableFull       ErrorKind = "process_table_full"
	CapabilityDenied       ErrorKind = "capability_denied"
	ResourceLimitExceeded  ErrorKind = "resource_limit_exceeded"
	SpawnFailed            ErrorKind = "spawn_failed"
	BackendNotAvailable    ErrorKind = "backend_not_available"
	GovernanceDenied       ErrorKind = "governance_denied"
	BadRequest             ErrorKind = "config"
)

// An Error is a refusal of the kernel.
type Error struct {
	Kind    ErrorKind
	Message string
}

func (e *Error) Error() string { return e.Message }

func errorf(kind ErrorKind, format string, args ...any) error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

// Errorf returns an error of a kind.
func Errorf(kind ErrorKind, format string, args ...any) error { return errorf(kind, format, args...) }

// KindOf returns the kind of an error of the kernel, "" for other errors.
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
