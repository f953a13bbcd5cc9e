package testnet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports of testnets lie below those that systems give to outgoing connections:
// what a node of a testnet listened on must be free when it comes back.
const (
	firstPort = 10_000
	lastPort  = 32_000
)

// FreePorts returns the first of n consecutive ports on which nobody listens at
// 127.0.0.1, neither TCP nor UDP.
func FreePorts(n int) (int, error) {
	for range 100 {
		base := firstPort + rand.IntN(lastPort-firstPort-n)
		free := true
		for p := base; p < base+n && free; p++ {
			free = isFree(net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		}
		if free {
			return base, nil
		}
	}
	return 0, fmt.Errorf("testnet: no %d free ports in a row", n)
}

func isFree(at string) bool {
	tcp, err := net.Listen("tcp", at)
	if err != nil {
		return false
	}
	tcp.Close()
	udp, err := net.ListenPacket("udp", at)
	if err != nil {
		return false
	}
	udp.Close()
	return true
}
