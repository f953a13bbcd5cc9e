package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// raw sends bytes on a connection of its own and returns what comes back until
// the server closes it, or has answered so many times.
func raw(t *testing.T, addr, bytes string, answers int) (status []int) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(apitest.FloodPatience))
	go io.WriteString(c, bytes) // it may be cut off
	r := bufio.NewReader(c)
	for range answers {
		res, err := http.ReadResponse(r, &http.Request{Method: "GET"})
		if err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Errorf("%.80q: no answer, and no end", bytes)
			}
			return status
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		status = append(status, res.StatusCode)
	}
	return status
}

// What is no HTTP, or an odd one, is refused or cut off.
func TestFloodOfBytes(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	s := h.ShortServe(256)
	addr := s.Listener.Addr().String()
	const host = "Host: 127.0.0.1\r\n"
	post := "POST /api/companies/" + string(of) + "/issues HTTP/1.1\r\n" + host + "Content-Type: application/json\r\n"
	for _, odd := range []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\x00\x00\x00\x00", "\r\n\r\n\r\n\r\n", "GET\r\n\r\n",
		"GET / HTTP/9.9\r\n" + host + "\r\n", "GET /\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\n" + host +
			"No colon\r\n\r\n", "GET / HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n", "GET / HTTP/1.1\r\n" + host +
			" X: folded\r\n\r\n",
		"GET /\x00 HTTP/1.1\r\n" + host + "\r\n", "GET /\x7f HTTP/1.1\r\n" + host + "\r\n",
		"GET http://evil.example/ HTTP/1.1\r\n" + host + "\r\n",
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
		"GET / HTTP/1.1\r\n" + host + "X: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", "GET / HTTP/1.1\r\n" + host +
			strings.Repeat("X-A: b\r\n", 40_000) + "\r\n", "GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\n" +
			host + "\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\nZZZ\r\nnot a chunk\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
		post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 100_000) + "\r\n{}\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + strings.Repeat("T: x\r\n", 50_000) + "\r\n",
		post + "Transfer-Encoding: gzip, chunked\r\n\r\n", post + "Transfer-Encoding: nonsense\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
		post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", post + "Content-Length: -1\r\n\r\n",
		post + "Content-Length: 99999999999999999999\r\n\r\n", post + "Content-Length: 9999999999\r\n\r\n{}",
		post + "Content-Length: 0x10\r\n\r\n{}", post + "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n",
		post + "Content-Length: 2\r\nExpect: miracles\r\n\r\n{}",
		post + "Content-Length: 100\r\n\r\n{\"title\":",
		post + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: " +
			"AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 2\r\n\r\n{}",
	} {
		for _, status := range raw(t, addr, odd, 4) {
			if status < 400 && status != 100 || status >= 500 && status != 501 && status != 503 &&
				status != 505 { // those are the HTTP library's, and right
				t.Errorf("%.120q was answered %d", odd, status)
			}
		}
	}
	// Many requests at once on one connection: each has its answer, in order, up to
	// the first that is none.
	one := "GET /api/health HTTP/1.1\r\n" + host + "\r\n"
	got := raw(t, addr, strings.Repeat(one,
		200)+post+"Content-Length: 2\r\n\r\n{}"+one+"nonsense\r\n\r\n"+strings.Repeat(one, 50), 300)
	if len(got) != 203 || got[199] != 200 || got[200] != 400 || got[201] != 200 || got[202] != 400 {
		t.Errorf("200 requests, a bad one, one and nonsense were answered %v", got)
	}
	h.AfterFlood(s.URL, of)
}

// Who dawdles over headers or a body, or opens connections and says nothing, is
// cut off, and others are served meanwhile.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	const most, loris, silent = 300, 100, 2000
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	s := h.ShortServe(most)
	addr := s.Listener.Addr().String()
	head := "POST /api/companies/" + string(of) +
		"/issues HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
	var wg sync.WaitGroup
	dawdle := func(begin, more string) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(apitest.FloodPatience))
		io.WriteString(c, begin)
		done := make(chan struct{})
		go func() { // byte by byte, until the other side has had enough
			defer close(done)
			for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
				if _, err := io.WriteString(c, more); err != nil {
					return
				}
			}
		}()
		b, err := io.ReadAll(c)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("a connection that dawdles is kept: %q", b)
		}
		c.Close()
		<-done
	}
	for range loris {
		wg.Go(func() { dawdle(head, "X") })
		wg.Go(func() { dawdle(head+"Content-Length: 100000\r\n\r\n{", " ") })
		wg.Go(func() { dawdle(head+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n") })
	}
	var open []net.Conn
	for range silent {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	h.AfterFlood(s.URL, of)
	wg.Wait()
	ended := 0
	for _, c := range open {
		c.SetDeadline(time.Now().Add(apitest.FloodPatience))
		if _, err := io.ReadAll(c); err == nil || !err.(net.Error).Timeout() {
			ended++
		}
		c.Close()
	}
	if ended != silent {
		t.Errorf("%d of %d connections that say nothing are kept", silent-ended, silent)
	}
	h.AfterFlood(s.URL, of)
}

func TestConnsKeepThoseAtWork(t *testing.T) {
	c := api.NewConns(3)
	conn := func() net.Conn { a, b := net.Pipe(); t.Cleanup(func() { a.Close(); b.Close() }); return a }
	a, b, d, e := conn(), conn(), conn(), conn()
	for _, n := range []net.Conn{a, b, d} {
		if c.Follow(n, http.StateNew) != nil {
			t.Fatal("one went too soon")
		}
	}
	c.Follow(a, http.StateActive)
	if gone := c.Follow(e, http.StateNew); gone != b {
		t.Error("not the one that was silent for the longest time went")
	}
	c.Follow(b, http.StateClosed)
	c.Follow(b, http.StateIdle) // too late
	c.Follow(d, http.StateActive)
	c.Follow(e, http.StateActive)
	if gone := c.Follow(b, http.StateNew); gone != b {
		t.Error("one at work went")
	}
	c.Follow(a, http.StateIdle)
	c.Follow(d, http.StateHijacked)
	if c.Len() != 2 || c.Idle.Len() != 1 {
		t.Errorf("%d connections, %d idle, want 2 and 1", c.Len(), c.Idle.Len())
	}
}

// A stream that is never read holds little, and not for ever.
func TestFloodOfStreamsThatNobodyReads(t *testing.T) {
	// Alone: what it measures is the whole heap, and other floods fill that too.
	const readers, events, size = 16, 2500, 4000 // more than the sockets take
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	s := h.Serve()
	var open []net.Conn
	for i := range readers {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		open = append(open, c)
		path, upgrade := "/events", ""
		if i%2 == 1 {
			path, upgrade = "/events/ws",
				"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+
					"dGhlIHNhbXBsZSBub25jZQ==\r\n"
		}
		fmt.Fprintf(c, "GET /api/companies/%s%s?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", of, path, upgrade)
	}
	for deadline := time.Now().Add(apitest.FloodPatience); len(h.Streams) < readers && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := `{"actorId":"x","action":"x.y","entityType":"x","entityId":"x","details":{"text":"` +
		strings.Repeat("a", size) + `"}}`
	for range events {
		h.Call("POST", "/api/companies/"+string(of)+"/activity", body).Want(t, 201, "")
	}
	var peak uint64
	for deadline := time.Now().Add(apitest.FloodPatience); len(h.Streams) > 0 && time.Now().Before(deadline); {
		runtime.GC()
		runtime.ReadMemStats(&after)
		peak = max(peak, after.HeapAlloc)
		time.Sleep(50 * time.Millisecond)
	}
	if n := len(h.Streams); n > 0 {
		t.Errorf("%d streams that nobody reads are kept", n)
	}
	// What is stored is in memory here, some times over; each stream may hold its queue beside it.
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 6*events*size+readers*2*size*(api.FeedQueue+64) {
		t.Errorf("the heap grew by %d MB", grown>>20)
	} else {
		t.Logf("the heap grew by %d MB", grown>>20)
	}
	for _, c := range open {
		c.Close()
	}
	h.AfterFlood(s.URL, of)
}
