package wasmkit

import "unsafe"

//go:wasmimport selvage call
func hostCall(method unsafe.Pointer, methodLen uint32, request unsafe.Pointer, requestLen uint32) uint32

//go:wasmimport selvage take
func hostTake(to unsafe.Pointer, length uint32) uint32

func exchange(method string, request []byte) ([]byte, error) {
	n := hostCall(unsafe.Pointer(unsafe.StringData(method)), uint32(len(method)), unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request)))
	answer := make([]byte, n)
	for at := uint32(0); at < n; {
		got := hostTake(unsafe.Pointer(&answer[at]), n-at)
		if got == 0 {
			return answer[:at], nil
		}
		at += got
	}
	return answer, nil
}
