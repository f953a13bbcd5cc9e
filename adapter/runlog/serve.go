package runlog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Between nodes a request and its answer are one frame each on a stream of
// their own: 4-byte big-endian length, then JSON, at most maxMessage. An answer
// holds a chunk or an error; readers ignore keys they do not know.
//
//	{"ref":"<company>/<agent>/<run>.ndjson","offset":0,"limit":256000}
//	{"chunk":{"content":"<base64>","size":2033,"growing":false}}   or   {"error":"run log not found","missing":true}

const (
	maxMessage = 2*MaxRead + 1024
	// serveTime bounds one exchange on either side.
	serveTime = 10 * time.Second
)

type request struct {
	Ref    string `json:"ref"`
	Offset int64  `json:"offset"`
	Limit  int64  `json:"limit"`
}

type answer struct {
	Chunk   *Chunk `json:"chunk,omitempty"`
	Error   string `json:"error,omitempty"`
	Missing bool   `json:"missing,omitempty"`
}

// Serve answers one request on c and closes it.
func (s *Store) Serve(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(serveTime))
	var q request
	if readMessage(c, &q) != nil {
		return
	}
	var a answer
	chunk, err := s.Read(q.Ref, q.Offset, q.Limit)
	if err != nil {
		a = answer{Error: err.Error(), Missing: errors.Is(err, ErrNoLog)}
	} else {
		a.Chunk = &chunk
	}
	_ = writeMessage(c, a)
}

// Fetch asks the node at the other end of c, whose Serve answers, and closes c.
// Errors are as for Read.
func Fetch(ctx context.Context, c net.Conn, ref string, offset, limit int64) (Chunk, error) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(serveTime))
	if err := writeMessage(c, request{ref, offset, limit}); err != nil {
		return Chunk{}, fmt.Errorf("ask for run log: %w", err)
	}
	var a answer
	if err := readMessage(c, &a); err != nil {
		return Chunk{}, fmt.Errorf("ask for run log: %w", err)
	}
	switch {
	case a.Missing:
		return Chunk{}, ErrNoLog
	case a.Chunk == nil:
		return Chunk{}, fmt.Errorf("ask for run log: %s", a.Error)
	}
	return *a.Chunk, nil
}

func writeMessage(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readMessage(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("message of %d bytes exceeds %d", n, maxMessage)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
