//go:build !wasip1

package wasmkit

import "errors"

func exchange(string, []byte) ([]byte, error) {
	return nil, errors.New("there is no host: build with GOOS=wasip1 GOARCH=wasm")
}
