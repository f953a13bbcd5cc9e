package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

// Many clients write all that they have to say before they read. One that says more
// than is taken reads why, whether it told beforehand how much it would say or not: the
// connection is not closed while it writes.
func TestATooLargeBodyIsRefusedInWords(t *testing.T) {
	t.Parallel()
	s := apitest.NewHarness(t).Serve()
	body := `{"name":"` + strings.Repeat("x", 8*api.MaxBody) + `"}`
	for name, sent := range map[string]string{
		"announced": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"in chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := fmt.Fprintf(conn,
			"POST /api/companies HTTP/1.1\r\nHost: 127.0.0.1:3100\r\nContent-Type: application/json\r\n%s", sent); err != nil {
			t.Fatalf("%s: nobody read to the end: %v", name, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(b), "too large") {
			t.Errorf("%s: answered %d %s, %v", name, res.StatusCode, b, err)
		}
		conn.Close()
	}
}
