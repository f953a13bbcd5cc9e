package live

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/selvage-mesh/selvage/api"
)

// followSocket is the live-events socket of Paperclip's web pages: each text message is
// one frame. The server pings, and closes the connection when the client sends a
// message.
func followSocket(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if err := handshake(rc.HTTP.Header); err != nil {
		return api.Response{}, err
	}
	f, start, err := follow(s, rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Response{Stream: func(w http.ResponseWriter, r *http.Request) error {
		leave, err := s.Stream()
		if err != nil {
			return err
		}
		defer leave()
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return nil // Accept has written the answer
		}
		defer c.CloseNow()
		ctx, cancel := s.Within(context.WithoutCancel(r.Context()))
		defer cancel()
		ctx = c.CloseRead(ctx) // ends when the client disconnects or sends a message
		done := make(chan struct{})
		go func() { defer close(done); start(ctx) }()
		defer func() { cancel(); <-done }()
		tick, look, watch := time.NewTicker(api.PingEvery), time.NewTicker(api.KeyAge), api.NewWatch(rc)
		defer tick.Stop()
		defer look.Stop()
		for {
			select {
			case frames, open := <-f.frames:
				if !open {
					c.Close(websocket.StatusGoingAway, "the feed ended; resume after the last id")
					return nil
				}
				if !watch.Holds(ctx, false) {
					return c.Close(websocket.StatusPolicyViolation, "the credential is over")
				}
				for _, ev := range frames {
					b, err := api.EncodeJSON(ev)
					if err != nil {
						return err
					}
					if writeMessage(ctx, c, b) != nil {
						return nil
					}
				}
			case <-look.C:
				if !watch.Holds(ctx, true) {
					return c.Close(websocket.StatusPolicyViolation, "the credential is over")
				}
			case <-tick.C:
				if ping(ctx, c) != nil {
					return nil
				}
			case <-ctx.Done():
				c.Close(websocket.StatusGoingAway, "closing")
				return nil
			}
		}
	}}, nil
}

func writeMessage(ctx context.Context, c *websocket.Conn, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, api.WriteTimeout)
	defer cancel()
	return c.Write(ctx, websocket.MessageText, b)
}

func ping(ctx context.Context, c *websocket.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, api.WriteTimeout)
	defer cancel()
	return c.Ping(ctx)
}

// handshake refuses a request that opens no WebSocket (RFC 6455, section 4.2.1), before the
// library does so in plain text.
func handshake(h http.Header) error {
	upgrades := slices.ContainsFunc(strings.Split(strings.Join(h.Values("Connection"), ","), ","), func(s string) bool {
		return strings.EqualFold(strings.TrimSpace(s), "upgrade")
	})
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(h.Get("Sec-WebSocket-Key")))
	switch {
	case !upgrades || !strings.EqualFold(h.Get("Upgrade"), "websocket"):
		return api.Invalid("Expected a WebSocket: the headers Upgrade and Connection are missing")
	case h.Get("Sec-WebSocket-Version") != "13":
		return api.Invalid("Expected version 13 of WebSocket, in the header Sec-WebSocket-Version")
	case err != nil || len(key) != 16 || len(h.Values("Sec-WebSocket-Key")) > 1:
		return api.Invalid("Expected one header Sec-WebSocket-Key, 16 bytes in base64")
	}
	return nil
}
