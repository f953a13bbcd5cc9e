package testnet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastWordsTellWhatGoroutinesWaitFor(t *testing.T) {
	dump := `{"time":"t","level":"INFO","msg":"request","status":200}
{"time":"t","level":"WARN","msg":"lease lost"}
SIGQUIT: quit
PC=0x4

goroutine 1 gp=0xc0 m=1 mp=0xc0 [idle]:
runtime.usleep()
	/go/src/runtime/sys.s:1

goroutine 7 [select, 3 minutes]:
runtime.gopark(0x1?, 0x2)
	/go/src/runtime/proc.go:1
github.com/selvage-mesh/selvage/consensus.(*link).ask(0xc0001, {0x1, 0x2})
	/x/consensus/link.go:90 +0x1
created by github.com/selvage-mesh/selvage/node.Open in goroutine 1
	/x/node/node.go:1

goroutine 8 [select]:
github.com/selvage-mesh/selvage/consensus.(*link).ask(0xc0002, {0x1, 0x2})
	/x/consensus/link.go:90 +0x1
created by github.com/selvage-mesh/selvage/node.Open in goroutine 1
	/x/node/node.go:1
`
	file := filepath.Join(t.TempDir(), "n1.log")
	if err := os.WriteFile(file, []byte(dump), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `{"time":"t","level":"WARN","msg":"lease lost"}
2 goroutines: [select] < consensus.(*link).ask < node.Open
`
	if got := lastWords(file); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := lastWords(file + "x"); !strings.Contains(got, "no such file") {
		t.Error(got)
	}
}
