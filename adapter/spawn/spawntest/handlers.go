// Package spawntest has small modules that are called for each message, put together by hand.
package spawntest

import "slices"

// Imports that the code of a handler may call, by number.
const (
	hostCall = iota // selvage.call(method, len, request, len) → len
	hostTake        // selvage.take(to, len) → len
	procExit        // wasi proc_exit(code)
	pollOnce        // wasi poll_oneoff(in, out, n, to) → errno
)

// Handler returns a module that exports on_message(len), with this code, a page of memory, a local
// beside the parameter, and a global that counts. At address 0 stands "ipc.reply".
func Handler(code ...byte) []byte {
	return module("on_message", []byte{0x60, 1, i32, 0}, append([]byte{1, 1, i32}, code...))
}

// Wrong returns a module whose on_message takes nothing.
func Wrong() []byte { return module("on_message", []byte{0x60, 0, 0}, []byte{0}) }

const i32 = 0x7f

func module(export string, typ, body []byte) []byte {
	types := slices.Concat([]byte{4}, typ,
		[]byte{0x60, 4, i32, i32, i32, i32, 1, i32, 0x60, 2, i32, i32, 1, i32, 0x60, 1, i32, 0})
	wasi := "wasi_snapshot_preview1"
	imports := slices.Concat([]byte{4}, name("selvage"), name("call"), []byte{0, 1}, name("selvage"), name("take"),
		[]byte{0, 2}, name(wasi), name("proc_exit"), []byte{0, 3}, name(wasi), name("poll_oneoff"), []byte{0, 1})
	exports := slices.Concat([]byte{2}, name("memory"), []byte{2, 0}, name(export), []byte{0, 4})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types), section(2, imports), section(3, []byte{1, 0}), section(5, []byte{1, 0, 1}),
		section(6, []byte{1, i32, 1, 0x41, 0, 0x0b}), section(7, exports),
		section(10, append([]byte{1}, sized(append(slices.Clone(body), 0x0b))...)),
		section(11, append([]byte{1, 0, 0x41, 0, 0x0b}, name("ipc.reply")...)))
}

func section(id byte, body []byte) []byte { return append([]byte{id}, sized(body)...) }

func name(s string) []byte { return sized([]byte(s)) }

// sized puts the length in front; it is below 1 << 14.
func sized(b []byte) []byte {
	if len(b) < 0x80 {
		return append([]byte{byte(len(b))}, b...)
	}
	return append([]byte{byte(len(b)) | 0x80, byte(len(b) >> 7)}, b...)
}

// take is take(1024, len), and counts the message.
var take = []byte{0x41, 0x80, 8, 0x20, 0, 0x10, hostTake, 0x1a, // take(1024, len)
	0x23, 0, 0x41, 1, 0x6a, 0x24, 0} // count++

// Counts returns a module that replies to each request with how many messages it has had, one digit.
// An envelope begins with {"id":"…", so its beginning is the one of the reply.
func Counts() []byte {
	return Handler(slices.Concat(take, []byte{
		0x41, 0x87, 8, 0x21, 1, // at = 1031
		0x03, 0x40, 0x20, 1, 0x41, 1, 0x6a, 0x22, 1, 0x2d, 0, 0, 0x41, 0x22, 0x47, 0x0d, 0, 0x0b, // until '"'
		0x20, 1, 0x42}, signed(0x2274786574222c22), []byte{0x37, 0, 0, // ","text"
		0x20, 1, 0x41}, signed(0x223a), []byte{0x3b, 0, 8, // :"
		0x20, 1, 0x23, 0, 0x41, 10, 0x70, 0x41, 0x30, 0x6a, 0x3a, 0, 10, // the digit
		0x20, 1, 0x41}, signed(0x7d22), []byte{0x3b, 0, 11, // "}
		0x41, 0, 0x41, 9, 0x41, 0x80, 8, 0x20, 1, 0x41}, signed(13-1024), []byte{0x6a, 0x10, hostCall, 0x1a})...)
}

// Traps, Spins and Exits return modules that end so at the first message, Exits with code 3.
func Traps() []byte { return Handler(0x00) }
func Spins() []byte { return Handler(0x03, 0x40, 0x0c, 0, 0x0b) }
func Exits() []byte { return Handler(0x41, 3, 0x10, procExit) }

// Naps returns a module that counts a message at address 2048, sleeps for a time below a second, and
// counts it at 2052: it traps when that is not one less then, because another call goes on.
func Naps(ms int64) []byte {
	load := func(at int64) []byte { return slices.Concat([]byte{0x41}, signed(at), []byte{0x28, 2, 0}) }
	bump := func(at int64) []byte {
		return slices.Concat([]byte{0x41}, signed(at), []byte{0x41}, signed(at),
			[]byte{0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0})
	}
	return Handler(slices.Concat(take, bump(2048),
		[]byte{0x41}, signed(4096+24), []byte{0x42}, signed(ms*1_000_000), []byte{0x37, 0, 0}, // a clock, relative
		[]byte{0x41}, signed(4096), []byte{0x41}, signed(5120), []byte{0x41, 1, 0x41}, signed(6144),
		[]byte{0x10, pollOnce, 0x1a}, bump(2052), load(2048), load(2052), []byte{0x47, 0x04, 0x40, 0x00, 0x0b})...)
}

// signed encodes a number as the code has it.
func signed(v int64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
