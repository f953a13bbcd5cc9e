package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"github.com/tetratelabs/wazero/api"
)

// hostModule is what guests import call and take from; see docs/sandbox-abi.md.
const hostModule = "selvage"

// A HostFunc does something for a guest: JSON in, JSON out. The context ends with
// the call's deadline. An error that is a *HostError reaches the guest as it is,
// any other as code "Failed" with its text, so its text must hold no secrets.
type HostFunc func(ctx context.Context, request json.RawMessage) (answer any, err error)

// Host is what a guest may ask for, by method, such as "issue.comment". What is
// not in it is denied, but for the clock and random numbers, which are denied when
// they are in it as nil.
type Host map[string]HostFunc

// A HostError is a no to a guest: {"code", "message"}, and with GovernanceDenied
// the reason, such as "mesh_stopped".
type HostError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
}

func (e *HostError) Error() string { return e.Code + ": " + e.Message }

// An envelope is what a guest takes: exactly one of ok and error.
type envelope struct {
	OK    any        `json:"ok"`
	Error *HostError `json:"error,omitempty"`
}

func instanceOf(ctx context.Context) *Instance {
	i, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok {
		panic(refuse(RuntimeUnavailable, "called from outside"))
	}
	return i
}

// hostCall is call(method, methodLen, request, requestLen) → length of the answer.
func hostCall(ctx context.Context, mod api.Module, args []uint64) {
	i := instanceOf(ctx)
	method := guestBytes(mod, args[0], args[1], maxMethod)
	request := guestBytes(mod, args[2], args[3], maxRequest)
	if i.calls++; i.calls > i.limits.HostCalls {
		panic(refuse(HostCallDenied, "the call asked its host more than %d times", i.limits.HostCalls))
	}
	i.spend(int64(len(request)) >> perRange)
	i.answer = i.ask(string(method), append(json.RawMessage(nil), request...))
	i.spend(int64(len(i.answer)) >> perRange)
	args[0] = uint64(len(i.answer))
}

// hostTake is take(to, length) → bytes that were copied.
func hostTake(ctx context.Context, mod api.Module, args []uint64) {
	i := instanceOf(ctx)
	to := guestBytes(mod, args[0], args[1], MaxMemory)
	n := copy(to, i.answer)
	if i.answer = i.answer[n:]; len(i.answer) == 0 {
		i.answer = nil
	}
	args[0] = uint64(n)
}

// guestBytes is a range of the guest's memory.
func guestBytes(mod api.Module, at, n uint64, most uint32) []byte {
	if uint32(n) > most {
		panic(refuse(WasmTrap, "%d bytes were handed to the host, %d are allowed", uint32(n), most))
	}
	if mod.Memory() == nil {
		panic(refuse(WasmTrap, "the module has no memory to call its host from"))
	}
	b, ok := mod.Memory().Read(uint32(at), uint32(n))
	if !ok {
		panic(refuse(WasmTrap, "out of bounds memory access by the host"))
	}
	return b
}

// ask calls a function of the host, without a turn.
func (i *Instance) ask(method string, request json.RawMessage) []byte {
	f, named := i.conf.Host[method]
	if !named {
		f = i.builtin(method)
	}
	if f == nil {
		return enveloped(nil, &HostError{Code: string(HostCallDenied), Message: "method " + method + " is not granted"})
	}
	if len(request) == 0 {
		request = json.RawMessage("{}")
	}
	if !json.Valid(request) {
		return enveloped(nil, &HostError{Code: "BadRequest", Message: "the request is not JSON"})
	}
	i.leave()
	answer, err := f(i.ctx, request)
	i.look()
	i.join()
	return enveloped(answer, err)
}

func enveloped(answer any, err error) []byte {
	e := envelope{OK: answer}
	if err != nil {
		e.OK = nil
		if !errors.As(err, &e.Error) {
			e.Error = &HostError{Code: "Failed", Message: err.Error()}
		}
	}
	b, err := json.Marshal(e)
	if err == nil && len(b) <= maxAnswer {
		return b
	}
	e = envelope{Error: &HostError{Code: "TooLarge", Message: "the answer is larger than a guest may get"}}
	if err != nil {
		e.Error = &HostError{Code: "Failed", Message: "the answer is not JSON"}
	}
	b, _ = json.Marshal(e) // two strings
	return b
}

// maxRandom bounds the random bytes of one request.
const maxRandom = 64 << 10

// builtin is what every guest may ask: WASI gives as much.
func (i *Instance) builtin(method string) HostFunc {
	switch method {
	case "clock.now":
		return func(context.Context, json.RawMessage) (any, error) {
			return map[string]any{"unixMs": i.fixed.clock().UnixMilli()}, nil
		}
	case "random":
		return func(_ context.Context, request json.RawMessage) (any, error) {
			var ask struct {
				Bytes int `json:"bytes"`
			}
			if err := json.Unmarshal(request, &ask); err != nil || ask.Bytes < 0 || ask.Bytes > maxRandom {
				return nil, &HostError{Code: "BadRequest", Message: "bytes must be a number up to 65536"}
			}
			b := make([]byte, ask.Bytes)
			var from io.Reader = rand.Reader
			if i.fixed.fixed() {
				from = i.fixed.seed
			}
			if _, err := io.ReadFull(from, b); err != nil {
				return nil, err
			}
			return map[string]any{"base64": base64.StdEncoding.EncodeToString(b)}, nil
		}
	}
	return nil
}
