package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage-mesh/selvage/testnet"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"selvage": func() { os.Exit(run(os.Args[1:])) }})
}

// Each script is a transcript that could stand in the manual. A script gets
// free ports of its own and a data directory under its work folder.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			ports, err := freePorts(8)
			if err != nil {
				return err
			}
			for i, p := range ports {
				e.Vars = append(e.Vars, fmt.Sprintf("PORT%d=%d", i, p))
			}
			e.Defer(func() { // what a script that failed has left running
				if p, err := testnet.Load(filepath.Join(e.WorkDir, "net")); err == nil {
					p.Down()
				}
			})
			if cache, err := os.UserCacheDir(); err == nil { // for scripts that build programs
				e.Vars = append(e.Vars, "GOCACHE="+cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")))
			}
			e.Vars = append(e.Vars, fmt.Sprintf("SELVAGE_API_URL=http://127.0.0.1:%d", ports[0]))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
		},
	})
}

// freePorts finds consecutive ports that nobody listens on, so that a testnet
// fits: HTTP on the first four, peers on the rest.
func freePorts(n int) ([]int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		base := l.Addr().(*net.TCPAddr).Port
		l.Close()
		var ports []int
		for p := base; p < base+n && p < 65_536; p++ {
			tcp, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				break
			}
			tcp.Close()
			udp, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				break
			}
			udp.Close()
			ports = append(ports, p)
		}
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports in a row", n)
}

// eventually is the script command "eventually COMMAND...": it runs COMMAND until it
// succeeds, for a minute at most.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND...")
	}
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = ts.Exec(args[0], args[1:]...); err == nil {
			return
		}
	}
	ts.Fatalf("%v: still failing after a minute: %v", args, err)
}
