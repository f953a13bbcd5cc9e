package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame is
//
//	length of the payload (4, big endian) | type (1) | payload
//
// with at most [MaxFrame] bytes of payload. What a type means is for the
// protocol of the stream; an unknown one is an error there.
const frameHeader = 5

// ErrFrameTooLarge says that a frame exceeds the reader's or writer's bound.
var ErrFrameTooLarge = errors.New("frame is too large")

// WriteFrame writes one frame with one call of w.Write.
func WriteFrame(w io.Writer, typ byte, payload []byte) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("%w: %d bytes", ErrFrameTooLarge, len(payload))
	}
	_, err := w.Write(appendFrame(make([]byte, 0, frameHeader+len(payload)), typ, payload))
	return err
}

func appendFrame(b []byte, typ byte, payload []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, typ), payload...)
}

// ReadFrame reads one frame of at most [MaxFrame] bytes. The error is io.EOF
// when r ends before the frame, io.ErrUnexpectedEOF when it ends within.
func ReadFrame(r io.Reader) (typ byte, payload []byte, err error) { return ReadFrameMax(r, MaxFrame) }

// ReadFrameMax is [ReadFrame] with a smaller bound on the payload.
func ReadFrameMax(r io.Reader, limit int) (typ byte, payload []byte, err error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(h[:4])
	if uint64(n) > uint64(limit) {
		return 0, nil, fmt.Errorf("%w: %d bytes", ErrFrameTooLarge, n)
	}
	payload, err = readN(r, int(n))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return h[4], payload, err
}

// readN reads n bytes. It takes memory as bytes arrive, at most doubling, so
// that a peer which only announces a large frame costs little.
func readN(r io.Reader, n int) ([]byte, error) {
	const first = 64 << 10
	b := make([]byte, 0, min(n, first))
	for len(b) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, 2*cap(b))), b...)
		}
		m, err := io.ReadFull(r, b[len(b):min(n, cap(b))])
		b = b[:len(b)+m]
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}
