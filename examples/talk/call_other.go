//go:build !wasip1

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// maxAnswer bounds an answer of the API, in bytes.
const maxAnswer = 32 << 20

// client asks the API of this node: over the socket that a container has, or at the address that a
// command has.
var client = http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
	DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if socket := os.Getenv("SELVAGE_API_SOCKET"); socket != "" {
			network, address = "unix", socket
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}

// call asks the API for what a module asks its host for, see docs/ipc.md.
func call(method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	path := map[string]string{"ipc.send": "send", "ipc.request": "request", "ipc.receive": "receive"}[method]
	if path == "" { // of one message
		var of map[string]json.RawMessage
		var id string
		if err := errors.Join(json.Unmarshal(body, &of), json.Unmarshal(of["id"], &id)); err != nil {
			return err
		}
		delete(of, "id")
		path = "messages/" + id + "/" + map[string]string{"ipc.ack": "ack", "ipc.reply": "reply"}[method]
		if body, err = json.Marshal(of); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(http.MethodPost, os.Getenv("SELVAGE_API_URL")+"/api/v1/ipc/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+os.Getenv("SELVAGE_API_KEY"))
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("HTTP %d: %.500s", res.StatusCode, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
