package testnet

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Ports of testnets lie below those that systems give to outgoing connections, and
// are claimed by the block for as long as this process lives: what a node of a
// testnet listened on must be free when it comes back.
const (
	firstPort = 10_000
	portBlock = 16
	blocks    = 1_375 // up to port 32,000
)

// claims keeps the locks of claimed blocks open.
var claims struct {
	sync.Mutex
	files []*os.File
}

// FreePorts returns the first of n consecutive ports, at most 16, on which nobody
// listens at 127.0.0.1, neither TCP nor UDP. No other process of this machine that
// asks gets them while this one lives.
func FreePorts(n int) (int, error) {
	dir := filepath.Join(os.TempDir(), "selvage-testnet-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	for range 200 {
		block := rand.IntN(blocks)
		f, ok := claim(filepath.Join(dir, strconv.Itoa(block)))
		if !ok {
			continue
		}
		base := firstPort + block*portBlock
		free := n <= portBlock
		for p := base; p < base+n && free; p++ {
			at := net.JoinHostPort("127.0.0.1", strconv.Itoa(p))
			free = isFree("tcp", at) && isFree("udp", at)
		}
		if !free {
			f.Close()
			continue
		}
		claims.Lock()
		claims.files = append(claims.files, f)
		claims.Unlock()
		return base, nil
	}
	return 0, fmt.Errorf("testnet: no %d free ports in a row", n)
}

// claim locks a file that nobody else has locked. One that belongs to another user
// is taken to be locked.
func claim(path string) (*os.File, bool) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, false
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, false
	}
	return f, true
}

// isFree reports whether nobody listens at an address: of tcp, else of udp.
func isFree(network, at string) bool {
	var l io.Closer
	var err error
	if network == "tcp" {
		l, err = net.Listen(network, at)
	} else {
		l, err = net.ListenPacket(network, at)
	}
	if err != nil {
		return false
	}
	l.Close()
	return true
}
