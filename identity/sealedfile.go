package identity

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"
)

// A sealed file is a stream that only its recipients can read, such as a
// backup. It is
//
//	"selvage-sealed/2\n"
//	one line of JSON, at most 64 KiB: {"about": …, "cipher": …, "to": [Recipient, …]}
//	chunks: length of the ciphertext (4, big endian) | ciphertext and tag
//
// "about" is what anybody may know of the content. The content is cut into
// pieces of 256 KiB, the last one shorter, or empty. Each is sealed with the
// cipher, "aes-256-gcm" (of a machine that has instructions for it, where it
// takes a third of the time) or "chacha20-poly1305" (of any other; without them
// it is the faster one, and takes the same time for every key), under a key
// that follows from the file key and the line, by
// HKDF-SHA256 with info "selvage/sealed-file/v1" ‖ SHA-256(line). The nonce is
// the number of the chunk (11, big endian) | 1 for the last, else 0. So a file
// that was changed, cut short, mixed or extended does not open.
//
// The file key (32 random bytes) is sealed to each recipient by HPKE as data
// keys are (see [Wrap]), with info "selvage/sealed-file/v1". A passphrase is a
// recipient too: its X25519 key is drawn from it by argon2id.
//
// Files of version 1, which say so in their first line, name no cipher: theirs
// is "chacha20-poly1305". Another first line or cipher is refused.
const (
	sealedMagic = "selvage-sealed/2\n"
	sealedFirst = "selvage-sealed/1\n" // of the version before
	sealedInfo  = "selvage/sealed-file/v1"
	sealedPiece = 256 << 10
	// maxSealedHead bounds what is read before anything is known to be genuine.
	maxSealedHead = 64 << 10
	// MaxRecipients bounds who can open one file.
	MaxRecipients = 16

	recipientPrefix = "selvage-recipient-"
	secretKeyPrefix = "selvage-secret-key-"
)

var (
	// ErrSealedFile says that a file is no sealed one, or is damaged.
	ErrSealedFile = errors.New("not an undamaged sealed file")
	// ErrNotRecipient says that none of the keys opens the file.
	ErrNotRecipient = errors.New("none of the keys opens this file")
)

// A RecipientKey is the private half of a recipient's key.
type RecipientKey = ecdh.PrivateKey

// A Recipient is a public key that files are sealed to.
type Recipient struct {
	Key    []byte `json:"key"`              // X25519 public key
	KDF    *KDF   `json:"kdf,omitempty"`    // how the private one follows from a passphrase
	Sealed []byte `json:"sealed,omitempty"` // the file key; in a file only
}

// A KDF says how argon2id makes a key of a passphrase.
type KDF struct {
	Salt    []byte `json:"salt"`
	Time    uint32 `json:"time"`
	Memory  uint32 `json:"memoryKiB"`
	Threads uint8  `json:"threads"`
}

// Bounds on the cost of argon2id, because a file may come from a stranger.
const (
	maxKDFTime   = 16
	maxKDFMemory = 1 << 20 // KiB
	minSalt      = 16
	maxSalt      = 64
)

// NewKDF draws a salt. The memory is what a board of 512 MB can still give.
func NewKDF() *KDF {
	k := &KDF{Salt: make([]byte, minSalt), Time: 3, Memory: 64 << 10, Threads: 2}
	rand.Read(k.Salt)
	return k
}

// Key returns the private key that follows from a passphrase.
func (k *KDF) Key(passphrase []byte) (*RecipientKey, error) {
	switch {
	case len(passphrase) == 0:
		return nil, errors.New("the passphrase is empty")
	case len(k.Salt) < minSalt || len(k.Salt) > maxSalt || k.Time < 1 || k.Time > maxKDFTime || k.Memory < 8 ||
		k.Memory > maxKDFMemory || k.Threads < 1:
		return nil, fmt.Errorf("%w: unusual parameters for a passphrase", ErrSealedFile)
	}
	return ecdh.X25519().NewPrivateKey(argon2.IDKey(passphrase, k.Salt, k.Time, k.Memory, k.Threads, 32))
}

// NewRecipientKey draws a key pair for sealed files.
func NewRecipientKey() *RecipientKey {
	var b [32]byte
	rand.Read(b[:])
	return mustX25519(b[:])
}

// FormatRecipient writes a public key as people pass it on.
func FormatRecipient(k *ecdh.PublicKey) string {
	return recipientPrefix + base64.RawURLEncoding.EncodeToString(k.Bytes())
}

// ParseRecipient reads what FormatRecipient wrote.
func ParseRecipient(s string) (Recipient, error) {
	b, err := unprefixed(recipientPrefix, s)
	if err != nil {
		return Recipient{}, fmt.Errorf("not a recipient (%s…): %w", recipientPrefix, err)
	}
	return Recipient{Key: b}, nil
}

// PublicKey returns the key of a recipient.
func PublicKey(r Recipient) (*ecdh.PublicKey, error) { return ecdh.X25519().NewPublicKey(r.Key) }

// FormatRecipientKey writes a private key, a secret, as it stands in a file.
func FormatRecipientKey(k *RecipientKey) string {
	return secretKeyPrefix + base64.RawURLEncoding.EncodeToString(k.Bytes())
}

// ParseRecipientKey reads what FormatRecipientKey wrote.
func ParseRecipientKey(s string) (*RecipientKey, error) {
	b, err := unprefixed(secretKeyPrefix, s)
	if err != nil {
		return nil, fmt.Errorf("not a secret key (%s…): %w", secretKeyPrefix, err)
	}
	return ecdh.X25519().NewPrivateKey(b)
}

func unprefixed(prefix, s string) ([]byte, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), prefix)
	if !ok {
		return nil, errors.New("it begins with something else")
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err == nil && len(b) != 32 {
		err = fmt.Errorf("%d bytes", len(b))
	}
	return b, err
}

type sealedHead struct {
	About  json.RawMessage `json:"about"`
	Cipher sealedCipher    `json:"cipher,omitempty"`
	To     []Recipient     `json:"to"`
}

// A sealedCipher says what the pieces of a sealed file are sealed with.
type sealedCipher string

const (
	aesGCM sealedCipher = "aes-256-gcm"
	chaCha sealedCipher = "chacha20-poly1305"
)

// fastCipher is the one that this machine seals with.
var fastCipher = func() sealedCipher {
	if cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL || cpu.S390X.HasAESGCM {
		return aesGCM
	}
	return chaCha
}()

const (
	sealedKeyBytes   = 32 // of both ciphers
	sealedNonceBytes = 12
	sealedOverhead   = 16 // the tag, also of both
)

// SealFile begins a sealed file. What is written to the result is its content;
// Close ends it, and a file that was not closed does not open. about is JSON
// that anybody may read.
func SealFile(w io.Writer, about []byte, to []Recipient) (io.WriteCloser, error) {
	return sealFileBy(fastCipher, w, about, to)
}

func sealFileBy(with sealedCipher, w io.Writer, about []byte, to []Recipient) (io.WriteCloser, error) {
	if len(to) == 0 || len(to) > MaxRecipients {
		return nil, fmt.Errorf("a sealed file has 1 to %d recipients", MaxRecipients)
	}
	var file [32]byte
	rand.Read(file[:])
	h := sealedHead{About: about, Cipher: with}
	for _, r := range to {
		pub, err := ecdh.X25519().NewPublicKey(r.Key)
		if err != nil {
			return nil, fmt.Errorf("recipient: %w", err)
		}
		k, err := hpke.NewDHKEMPublicKey(pub)
		if err != nil {
			return nil, fmt.Errorf("recipient: %w", err)
		}
		if r.Sealed, err = hpke.Seal(k, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), []byte(sealedInfo), file[:]); err != nil {
			return nil, fmt.Errorf("recipient: %w", err)
		}
		h.To = append(h.To, r)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("sealed file: %w", err)
	}
	if line = append(line, '\n'); len(line) > maxSealedHead {
		return nil, fmt.Errorf("sealed file: a head of %d bytes", len(line))
	}
	c, err := with.open(file[:], line)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(append([]byte(sealedMagic), line...)); err != nil {
		return nil, err
	}
	return &sealWriter{w: w, aead: c, fill: &pieceGroup{}}, nil
}

// open returns the cipher under the key of one file.
func (c sealedCipher) open(file, line []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(line)
	key, err := hkdf.Key(sha256.New, file, nil, sealedInfo+string(sum[:]), sealedKeyBytes)
	if err != nil {
		return nil, err
	}
	switch c {
	case aesGCM:
		b, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		return cipher.NewGCM(b)
	case chaCha:
		return chacha20poly1305.New(key)
	}
	return nil, fmt.Errorf("%w: its cipher %q is not one of this version", ErrSealedFile, c)
}

func chunkNonce(n uint64, last bool) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 3, sealedNonceBytes), n)
	if last {
		return append(b, 1)
	}
	return append(b, 0)
}

// sealedGroup is how many pieces are sealed, or opened, concurrently, each by a goroutine that
// ends by itself; two groups are held in memory.
const sealedGroup = 4

// A pieceGroup is some consecutive pieces. Its memory is reused.
type pieceGroup struct {
	n     int
	plain [sealedGroup][]byte
	coded [sealedGroup][]byte // a chunk each; the length goes before it in a writer's
	errs  [sealedGroup]error  // of opening
	end   error               // what follows the last piece of a reader's group
	work  sync.WaitGroup
}

// sealWriter seals one group while it accepts the next. It writes only in its caller's
// goroutine.
type sealWriter struct {
	w    io.Writer
	aead cipher.AEAD
	fill *pieceGroup // takes what is written
	busy *pieceGroup // is being sealed, nil for none
	n    uint64
	err  error
}

func (s *sealWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 && s.err == nil {
		g := s.fill
		if g.n == 0 || len(g.plain[g.n-1]) == sealedPiece { // there is more, so this one is not the last
			if g.n == sealedGroup {
				s.turn(false)
				continue
			}
			g.begin()
		}
		piece := &g.plain[g.n-1]
		take := min(len(p), sealedPiece-len(*piece))
		*piece = append(*piece, p[:take]...)
		p, n = p[take:], n+take
	}
	return n, s.err
}

// begin begins another piece.
func (g *pieceGroup) begin() {
	if g.plain[g.n] == nil {
		g.plain[g.n] = make([]byte, 0, sealedPiece)
	}
	g.plain[g.n] = g.plain[g.n][:0]
	g.n++
}

// turn begins to seal the group that is full, and writes the one before.
func (s *sealWriter) turn(last bool) {
	g, before := s.fill, s.busy
	for i, piece := range g.plain[:g.n] {
		nonce := chunkNonce(s.n, last && i == g.n-1)
		s.n++
		g.work.Go(func() {
			out := binary.BigEndian.AppendUint32(g.coded[i][:0], uint32(len(piece)+sealedOverhead))
			g.coded[i] = s.aead.Seal(out, nonce, piece, nil)
		})
	}
	if before == nil {
		before = &pieceGroup{}
	}
	s.put(before)
	s.busy, s.fill = g, before
}

// put writes a group, and empties it.
func (s *sealWriter) put(g *pieceGroup) {
	g.work.Wait()
	for _, chunk := range g.coded[:g.n] {
		if s.err == nil {
			_, s.err = s.w.Write(chunk)
		}
	}
	g.n = 0
}

func (s *sealWriter) Close() error {
	if s.err == nil {
		if s.fill.n == 0 {
			s.fill.begin() // the last piece of an empty file
		}
		s.turn(true)
		s.put(s.busy)
	}
	err := s.err
	s.err = errors.New("sealed file is closed")
	return err
}

// A SealedFile is one whose head was read.
type SealedFile struct {
	About []byte // JSON; genuine only once the file is open
	To    []Recipient

	line   []byte
	cipher sealedCipher
	r      *bufio.Reader
}

// ReadSealedFile reads the head of a sealed file.
func ReadSealedFile(r io.Reader) (*SealedFile, error) {
	f := &SealedFile{r: bufio.NewReaderSize(r, maxSealedHead)}
	magic := make([]byte, len(sealedMagic))
	if _, err := io.ReadFull(f.r, magic); err != nil || string(magic) != sealedMagic && string(magic) != sealedFirst {
		return nil, fmt.Errorf("%w: its first line is not that of this version", ErrSealedFile)
	}
	line, err := f.r.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("%w: its second line: %w", ErrSealedFile, err)
	}
	f.line = bytes.Clone(line)
	var h sealedHead
	if err := json.Unmarshal(f.line, &h); err != nil || len(h.To) == 0 || len(h.To) > MaxRecipients {
		return nil, fmt.Errorf("%w: its second line does not decode", ErrSealedFile)
	}
	if string(magic) == sealedFirst {
		h.Cipher = chaCha
	}
	f.About, f.To, f.cipher = h.About, h.To, h.Cipher
	return f, nil
}

// NeedsPassphrase tells whether a passphrase opens the file.
func (f *SealedFile) NeedsPassphrase() bool {
	for _, r := range f.To {
		if r.KDF != nil {
			return true
		}
	}
	return false
}

// Open returns the content, with a passphrase (may be nil) or secret keys. What
// is read is genuine; at the end of a file that was cut short, or is damaged
// anywhere, the error wraps [ErrSealedFile].
func (f *SealedFile) Open(passphrase []byte, keys ...*RecipientKey) (io.Reader, error) {
	for _, r := range f.To {
		if r.KDF != nil && len(passphrase) > 0 {
			k, err := r.KDF.Key(passphrase)
			if err != nil {
				return nil, err
			}
			keys = append(keys, k)
		}
	}
	for _, r := range f.To {
		for _, k := range keys {
			if !bytes.Equal(k.PublicKey().Bytes(), r.Key) {
				continue
			}
			priv, err := hpke.NewDHKEMPrivateKey(k)
			if err != nil {
				return nil, err
			}
			file, err := hpke.Open(priv, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), []byte(sealedInfo), r.Sealed)
			if err != nil {
				continue
			}
			c, err := f.cipher.open(file, f.line)
			if err != nil {
				return nil, err
			}
			return &sealReader{r: f.r, aead: c}, nil
		}
	}
	return nil, ErrNotRecipient
}

// sealReader opens one group while it returns the one before. It reads only in its caller's
// goroutine.
type sealReader struct {
	r     *bufio.Reader
	aead  cipher.AEAD
	now   *pieceGroup // is given out
	ahead *pieceGroup // is being opened
	at    int         // piece of now
	rest  []byte      // of that piece
	n     uint64      // chunks read
	err   error
}

func (s *sealReader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.next()
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next moves to the next piece, or to the error in its place.
func (s *sealReader) next() {
	if s.now == nil { // the first of all
		s.now, s.ahead = &pieceGroup{}, &pieceGroup{}
		s.load(s.ahead)
	}
	if s.at < s.now.n {
		if s.err = s.now.errs[s.at]; s.err == nil {
			s.rest = s.now.plain[s.at]
		}
		s.at++
		return
	}
	if s.err = s.now.end; s.err != nil {
		return
	}
	s.now, s.ahead, s.at = s.ahead, s.now, 0
	s.now.work.Wait()
	if s.now.end == nil {
		s.load(s.ahead)
	}
}

// load reads a group of chunks and begins to open them.
func (s *sealReader) load(g *pieceGroup) {
	for g.n = 0; g.n < sealedGroup && g.end == nil; g.n++ {
		i, n := g.n, s.n
		if g.coded[i] == nil {
			g.coded[i] = make([]byte, sealedPiece+sealedOverhead)
		}
		in, err := s.chunk(g.coded[i])
		if g.end = err; err != nil {
			return
		}
		s.n++
		_, eof := s.r.Peek(1)
		g.end = eof
		g.work.Go(func() {
			out, err := s.aead.Open(in[:0], chunkNonce(n, eof != nil), in, nil)
			if err != nil {
				err = fmt.Errorf("%w: chunk %d", ErrSealedFile, n)
			}
			g.plain[i], g.errs[i] = out, err
		})
	}
}

// chunk reads a chunk into b.
func (s *sealReader) chunk(b []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return nil, fmt.Errorf("%w: it is cut short", ErrSealedFile)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < sealedOverhead || int(n) > len(b) {
		return nil, fmt.Errorf("%w: chunk %d has %d bytes", ErrSealedFile, s.n, n)
	}
	if _, err := io.ReadFull(s.r, b[:n]); err != nil {
		return nil, fmt.Errorf("%w: it is cut short", ErrSealedFile)
	}
	return b[:n], nil
}
