// Command talk is an example of processes that talk: one answers, another one asks. The same program
// works as a native command, as a module and in a container.
//
//	go build -o talk ./examples/talk
//	GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o talk.wasm ./examples/talk
//	selvage spawn --name greeter --wasm talk.wasm -- answer
//	selvage spawn --name asker -- $PWD/talk ask name:greeter hello
//	selvage process log asker
//
// Built with -buildmode=c-shared the module is a reactor: it is called for each message, and rests in
// between.
//
// The one that answers may also be the provider of a service: it replies to a call of a method with
// what it was called with. Without arguments it says what it reads, as a tool of an app does.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "talk:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	case len(args) == 1 && args[0] == "answer":
		return answer()
	case len(args) == 3 && args[0] == "ask":
		return ask(args[1], args[2])
	case len(args) == 3 && args[0] == "publish":
		return call("ipc.send", message{To: "topic:" + args[1], Text: &args[2]}, nil)
	}
	return errors.New("usage: talk answer | talk ask TARGET TEXT | talk publish TOPIC TEXT")
}

// A message is one that is sent.
type message struct {
	To     string  `json:"to"`
	Text   *string `json:"text,omitempty"`
	WaitMs int     `json:"wait_ms,omitempty"`
}

// An envelope is a message as it is received.
type envelope struct {
	ID      string `json:"id"`
	From    string `json:"from"`
	Payload struct {
		Text string          `json:"text"`
		JSON json.RawMessage `json:"json"`
	} `json:"payload"`
	WantsReply bool `json:"wants_reply"`
	Reliable   bool `json:"reliable"`
}

// says returns what a message says.
func (e envelope) says() string {
	if len(e.Payload.JSON) > 0 {
		return string(e.Payload.JSON)
	}
	return e.Payload.Text
}

// ask asks a process, and prints its reply.
func ask(to, text string) error {
	var reply envelope
	if err := call("ipc.request", message{To: to, Text: &text, WaitMs: 60_000}, &reply); err != nil {
		return err
	}
	fmt.Println(reply.From, "says", reply.says())
	return nil
}

// answer answers until it is ended. What can not be answered any more is noted.
func answer() error {
	failures := 0
	for {
		var got struct {
			Messages []envelope `json:"messages"`
		}
		if err := call("ipc.receive", map[string]int{"limit": 1, "wait_ms": 25_000}, &got); err != nil {
			if failures++; failures > 20 {
				return err
			}
			time.Sleep(time.Second) // its node may be about to serve
			continue
		}
		failures = 0
		for _, m := range got.Messages {
			if err := handle(m); err != nil {
				fmt.Fprintln(os.Stderr, "talk:", m.ID, err)
			}
		}
	}
}

func handle(m envelope) error {
	fmt.Println(m.From, "said", m.says())
	if m.Reliable {
		return call("ipc.ack", map[string]string{"id": m.ID}, nil)
	}
	if !m.WantsReply {
		return nil
	}
	var method struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(m.Payload.JSON, &method) == nil && method.Method != "" {
		said := fmt.Sprintf("%s(%s) by %s", method.Method, method.Params, os.Getenv("SELVAGE_PID"))
		return call("ipc.reply", map[string]any{"id": m.ID, "json": map[string]string{"result": said}}, nil)
	}
	said := strings.ToUpper(m.says()) + " by " + os.Getenv("SELVAGE_PID")
	return call("ipc.reply", map[string]any{"id": m.ID, "text": said}, nil)
}
