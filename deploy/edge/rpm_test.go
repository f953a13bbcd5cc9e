package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// packed is a file of a package.
type packed struct {
	mode    os.FileMode
	content []byte
}

// unpackRPM reads the files of an RPM, by their paths below the root, without its tools: a lead of 96 bytes, the
// signature and the header (each three bytes of magic, its version, four bytes that
// are reserved, the number of entries of 16 bytes and the bytes of their values,
// the signature filled up to eight), and a cpio archive of the "new" format.
func unpackRPM(t *testing.T, path string) map[string]packed {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := 96
	for part, align := range []int{8, 1} {
		if len(b) < at+16 || !bytes.Equal(b[at:at+4], []byte{0x8e, 0xad, 0xe8, 1}) {
			t.Fatalf("part %d of the rpm has no magic", part)
		}
		at += 16 + 16*int(binary.BigEndian.Uint32(b[at+8:])) + int(binary.BigEndian.Uint32(b[at+12:]))
		at = (at + align - 1) / align * align
	}
	z, err := gzip.NewReader(bytes.NewReader(b[at:]))
	if err != nil {
		t.Fatal("payload:", err)
	}
	cpio, err := io.ReadAll(z)
	if err != nil {
		t.Fatal("payload:", err)
	}
	files := map[string]packed{}
	for len(cpio) > 110 && string(cpio[:6]) == "070701" {
		field := func(i int) int {
			n, err := strconv.ParseUint(string(cpio[6+8*i:14+8*i]), 16, 32)
			if err != nil {
				t.Fatal("cpio:", err)
			}
			return int(n)
		}
		mode, size, name := field(1), field(6), field(11)
		body := (110 + name + 3) / 4 * 4
		end := (body + size + 3) / 4 * 4
		if len(cpio) < end {
			t.Fatal("cpio: cut short")
		}
		files[strings.TrimLeft(string(cpio[110:110+name-1]), "./")] = packed{os.FileMode(mode & 0o777),
			cpio[body : body+size]}
		cpio = cpio[end:]
	}
	return files
}
