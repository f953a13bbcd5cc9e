package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errTooLong says that one event of a stream is longer than maxEvent.
var errTooLong = fmt.Errorf("an event is longer than %d bytes", maxEvent)

// An event is one server-sent event. Raw is its bytes as received, with the empty line at its
// end; a comment is an event without data. All three are valid until the next event is read.
type event struct {
	Name string
	Data []byte
	Raw  []byte
}

// A stream reads server-sent events: lines end in LF or CR LF, and an empty line ends the event.
// Only the fields event and data are used; several lines of data are joined by LF. An event with
// data that is cut off by the end of the stream is returned too: some upstreams omit the last
// empty line.
type stream struct {
	r    *bufio.Reader
	raw  []byte
	data []byte
}

func newStream(r io.Reader) *stream { return &stream{r: bufio.NewReaderSize(r, 16<<10)} }

// next returns the next event, io.EOF at the end, or the error of the stream.
func (s *stream) next() (e event, err error) {
	s.raw, s.data = s.raw[:0], s.data[:0]
	lines := 0
	for {
		line, err := s.line()
		if err != nil && (!errors.Is(err, io.EOF) || len(s.raw) == 0) {
			return event{}, err
		}
		text := bytes.TrimRight(line, "\r\n")
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		if len(text) == 0 && err == nil && len(s.raw) == len(line) {
			s.raw = s.raw[:0] // nothing before it
			continue
		}
		if name, value, ok := field(text); ok {
			switch name {
			case "event":
				e.Name = string(value)
			case "data":
				if lines++; lines > 1 {
					s.data = append(s.data, '\n')
				}
				s.data = append(s.data, value...)
			}
		}
		if len(text) == 0 || err != nil {
			if err != nil && lines == 0 {
				return event{}, io.EOF
			}
			e.Data, e.Raw = s.data, s.raw
			if err != nil { // make a whole event of it
				e.Raw = append(bytes.TrimRight(s.raw, "\r\n"), "\n\n"...)
			}
			return e, nil
		}
	}
}

// line reads one line into raw and returns it.
func (s *stream) line() ([]byte, error) {
	from := len(s.raw)
	for {
		piece, err := s.r.ReadSlice('\n')
		if len(s.raw)+len(piece) > maxEvent {
			return nil, errTooLong
		}
		s.raw = append(s.raw, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return s.raw[from:], err
		}
	}
}

// field cuts a line into its name and value; comments have none.
func field(line []byte) (name string, value []byte, ok bool) {
	n, v, found := bytes.Cut(line, []byte(":"))
	if len(n) == 0 {
		return "", nil, false
	}
	if found {
		v = bytes.TrimPrefix(v, []byte(" "))
	}
	return string(n), v, true
}

// appendEvent writes an event; name may be "".
func appendEvent(b []byte, name string, data []byte) []byte {
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(b, "data: "...), data...)
	return append(b, "\n\n"...)
}
