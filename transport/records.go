package transport

import (
	"bufio"
	"encoding/binary"
	"io"
	"time"

	"github.com/flynn/noise"
)

// After its handshake the first stream carries records, each a Noise transport
// message under the key of its direction, preceded by its length (2, big endian):
//
//	length (2) | Noise message of: flag (1) | up to 65,518 bytes
//
// The bytes of all records of a direction, in order, are a sequence of frames
// (see frame.go). Flag 0 is an ordinary record; after one with flag 1 both
// sides rekey that direction, as the Noise specification defines Rekey. The
// sender does so at the latest after 2^20 messages or an hour; a receiver that
// sees more messages under one key, or another flag, closes the connection.
const (
	recordPlain = 0
	recordRekey = 1
)

// records is the two directions. One goroutine reads, one writes.
type records struct {
	r       *bufio.Reader
	recv    *noise.CipherState
	in      []byte // of the present record, what was not read yet
	scratch []byte
	got     int      // messages since the last rekey
	binding [32]byte // hash of the handshake

	w       io.Writer
	send    *noise.CipherState
	sent    int
	rekeyed time.Time
	out     []byte
}

func newRecords(rw io.ReadWriter, send, recv *noise.CipherState) *records {
	return &records{
		r: bufio.NewReaderSize(rw, 4<<10), recv: recv,
		w: rw, send: send, rekeyed: time.Now(),
	}
}

// Write sends b, in as many records as it takes, with one call below.
func (c *records) Write(b []byte) (int, error) {
	n := len(b)
	c.out = c.out[:0]
	for len(b) > 0 {
		part := b[:min(len(b), maxRecord)]
		b = b[len(part):]
		if err := c.seal(part); err != nil {
			return 0, err
		}
	}
	_, err := c.w.Write(c.out)
	if cap(c.out) > maxNoiseMessage {
		c.out = nil // a rare large frame should not stay in memory
	}
	if err != nil {
		return 0, byPeer(err)
	}
	return n, nil
}

func (c *records) seal(part []byte) (err error) {
	flag := byte(recordPlain)
	if c.sent++; c.sent >= rekeyMessages || time.Since(c.rekeyed) >= rekeyInterval {
		flag = recordRekey
	}
	plain := append(append(make([]byte, 0, 1+len(part)), flag), part...)
	c.out = binary.BigEndian.AppendUint16(c.out, uint16(len(plain)+16))
	if c.out, err = c.send.Encrypt(c.out, nil, plain); err != nil {
		return err
	}
	if flag == recordRekey {
		c.send.Rekey()
		c.sent, c.rekeyed = 0, time.Now()
	}
	return nil
}

// Read returns bytes of the next records.
func (c *records) Read(b []byte) (int, error) {
	for len(c.in) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *records) next() error {
	var h [2]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return byPeer(err)
	}
	n := int(binary.BigEndian.Uint16(h[:]))
	if cap(c.scratch) < n {
		c.scratch = make([]byte, n)
	}
	m := c.scratch[:n]
	if _, err := io.ReadFull(c.r, m); err != nil {
		return byPeer(err)
	}
	plain, err := c.recv.Decrypt(m[:0], nil, m)
	if err != nil {
		return refuse(BadHandshake, "a control record does not decrypt")
	}
	c.got++
	if len(plain) == 0 || plain[0] > recordRekey || c.got > rekeyMessages {
		return refuse(Malformed, "control record")
	}
	if plain[0] == recordRekey {
		c.recv.Rekey()
		c.got = 0
	}
	c.in = plain[1:]
	return nil
}
