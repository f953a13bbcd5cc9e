package testnet

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/container/containertest"
)

const boxImage = "localhost/selvage-socket-test:1"

// offline is a program without a network that uses the command line, as itself: it sends a message to $TO, calls a
// tool of the MCP server, and asks an address that does not answer, which wins over the socket.
const offline = `export SELVAGE_API_URL=http://127.0.0.1:1
"$SELVAGE" ipc send "$TO" "from $SELVAGE_PID"
coproc M { "$SELVAGE" mcp --all 2>&1; }
echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"t","version":"1"}}}' >&${M[1]}
read -r -u ${M[0]} _
echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&${M[1]}
echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"selvagePostV1IpcSend",` +
	`"arguments":{"to":"'$TO'","text":"by a tool"}}}' >&${M[1]}
read -r -u ${M[0]} said
echo "${said:0:2000}"
"$SELVAGE" --api http://127.0.0.1:1 ipc send "$TO" no 2>&1
echo over`

// hears is a program that says what it is told.
const hears = `while :; do "$SELVAGE" ipc recv --wait-ms 20000 | tail -n +2; done`

// The command line and its MCP server reach the node from a command that has no network, and from a container that has
// none, by the socket that they are given.
func TestTheCommandLineWithoutANetwork(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	var args []string
	engine := image(t)
	if engine != nil {
		args = []string{"--containers", strings.Join(engine, " ")}
	}
	p := processes(t, args...)
	n := &p.Nodes[0]
	spawn := func(body map[string]any) string {
		var r struct{ Address string }
		if _, err := n.Call(t.Context(), "POST", "/api/v1/processes", body, &r); err != nil {
			t.Fatal(err)
		}
		return r.Address
	}
	said := func(of string) string {
		var page struct{ Content string }
		_, _ = n.Call(t.Context(), "GET", "/api/v1/processes/"+of+"/log", nil, &page)
		return page.Content
	}
	ear := spawn(map[string]any{"name": "ear", "command": []string{"bash", "-c", hears},
		"env": map[string]string{"SELVAGE": selvage}})
	mouth := spawn(map[string]any{"name": "mouth", "command": []string{"bash", "-c", offline},
		"env": map[string]string{"SELVAGE": selvage, "TO": "name:ear"}})
	// What a node starts stands behind everything else on a busy machine.
	within(5*time.Minute).Until(t, "the command is through", func() bool { return strings.Contains(said(mouth), "over") })
	if out := said(mouth); !strings.Contains(out, "no answer from http://127.0.0.1:1") ||
		strings.Contains(out, "isError") {
		t.Errorf("the command said %s", out)
	}
	want := []string{"from " + mouth, "by a tool"}
	if engine != nil {
		spawn(map[string]any{"name": "box", "image": boxImage,
			"command": []string{"/selvage", "ipc", "send", "name:ear", "from a container"}})
		want = append(want, "from a container")
	}
	within(5*time.Minute).Until(t, "all messages are there", func() bool {
		out := said(ear)
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(out, w) })
	})
}

// image makes an image of the program alone, and returns the engine; nil where there is none.
func image(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(selvage)
	if err != nil {
		t.Fatal(err)
	}
	engine, why := containertest.Image(t, boxImage, "selvage", b, "--help")
	if engine == nil {
		t.Log("without containers:", why)
	}
	return engine
}
