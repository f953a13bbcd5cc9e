package transport

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/flynn/noise"

	"github.com/selvage-mesh/selvage/identity"
)

// The first stream of a connection, opened by the dialler, begins with a Noise
// handshake, 25519 and BLAKE2s with AESGCM or ChaChaPoly (see protoAES). Each
// message is preceded by its length (2, big endian).
//
//	→ hello: version 0x01 | pattern (1) | token ID length (1) | token ID
//	→ message 1: e                 no payload
//	← message 2: e, ee, s, es      payload: the responder's party
//	→ message 3: s, se             payload: the initiator's party
//	← record: an "accept" frame    see control.go
//
// Pattern 0 is XX and has no token ID; pattern 1 is XXpsk3 with the PSK of the
// named join token; pattern 2 is XX by a node that has no mesh, see ask.go. The prologue is "selvage/1" ‖ exporter
// value of the TLS connection (32) ‖ hello. A party is
//
//	version 0x01 | mesh ID (16, zero without a mesh) | certificate of the Noise key (130) | admission chain (rest)
//
// as package identity encodes them. A mesh of a later epoch than the first puts
// its number before the chain:
//
//	version 0x02 | mesh ID (16) | certificate of the Noise key (130) | epoch (8, big endian, at least 2) |
//	admission chain (rest)
//
// The dialler has checked the responder
// before it sends message 3; the responder accepts by the frame, or closes the
// connection with a [Reason]. Other versions and patterns are refused.
const (
	prologue     = "selvage/1"
	helloVersion = 1
	patternXX    = 0
	patternJoin  = 1
	patternAsk   = 2
	maxTokenID   = 64

	partyVersion = 1
	partyEpoch   = 2 // with an epoch
	partyMin     = 1 + 16 + 130
	epochBytes   = 8
)

var noMesh [16]byte

// A hello is what a dialler sends in the clear (but inside QUIC).
type hello struct {
	pattern byte
	tokenID string
}

func (h hello) encode() []byte {
	return append([]byte{helloVersion, h.pattern, byte(len(h.tokenID))}, h.tokenID...)
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) < 3 || b[0] != helloVersion || len(b) != 3+int(b[2]) {
		return h, refuse(Malformed, "hello")
	}
	h = hello{b[1], string(b[3:])}
	switch {
	case (h.pattern == patternXX || h.pattern == patternAsk) && h.tokenID == "":
	case h.pattern == patternJoin && h.tokenID != "" && len(h.tokenID) <= maxTokenID:
	default:
		return hello{}, refuse(Malformed, "hello")
	}
	return h, nil
}

// A party is who a side says it is; the Noise handshake shows that it holds the
// certified key.
type party struct {
	mesh       identity.MeshID // "" without a mesh
	epoch      uint64          // of the mesh; 1 unless it says another
	cert       identity.Certificate
	admissions []identity.Admission
}

// encodeParty takes the admission chain encoded, as the node keeps it.
func encodeParty(mesh identity.MeshID, epoch uint64, cert identity.Certificate, admissions []byte) []byte {
	id := noMesh
	hex.Decode(id[:], []byte(mesh)) // "" leaves zeros
	b := append([]byte{partyVersion}, id[:]...)
	b = append(b, cert.Encode()...)
	if epoch > 1 {
		b[0] = partyEpoch
		b = binary.BigEndian.AppendUint64(b, epoch)
	}
	return append(b, admissions...)
}

// decodeParty reads a party and checks the certificate's signature.
func decodeParty(b []byte) (p party, err error) {
	if len(b) < partyMin || b[0] != partyVersion && b[0] != partyEpoch {
		return p, refuse(Malformed, "handshake payload")
	}
	rest := b[partyMin:]
	p.epoch = 1
	if b[0] == partyEpoch {
		if len(rest) < epochBytes || binary.BigEndian.Uint64(rest) < 2 {
			return p, refuse(Malformed, "epoch")
		}
		p.epoch, rest = binary.BigEndian.Uint64(rest), rest[epochBytes:]
	}
	if id := [16]byte(b[1:17]); id != noMesh {
		p.mesh = identity.MeshID(hex.EncodeToString(id[:]))
	}
	if p.cert, err = identity.DecodeCertificate(b[17:partyMin]); err != nil {
		return p, refuse(BadIdentity, "%v", err)
	}
	if p.admissions, err = identity.DecodeAdmissions(rest); err != nil {
		return p, refuse(Malformed, "admissions")
	}
	return p, nil
}

// A shake is one side of a handshake.
type shake struct {
	keys     *identity.Keys
	self     []byte // this side's encoded party
	exporter []byte
	aes      bool
	hello    hello
	psk      []byte // 32 bytes, with patternJoin
	random   io.Reader
}

var (
	suiteAES    = noise.NewCipherSuite(noise.DH25519, noise.CipherAESGCM, noise.HashBLAKE2s)
	suiteChaCha = noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashBLAKE2s)
)

func (s shake) state(initiator bool) (*noise.HandshakeState, error) {
	c := noise.Config{
		CipherSuite: suiteChaCha,
		Random:      s.random,
		Pattern:     noise.HandshakeXX,
		Initiator:   initiator,
		StaticKeypair: noise.DHKey{
			Private: s.keys.Noise.Bytes(),
			Public:  s.keys.Noise.PublicKey().Bytes(),
		},
	}
	if s.aes {
		c.CipherSuite = suiteAES
	}
	c.Prologue = append(append([]byte(prologue), s.exporter...), s.hello.encode()...)
	if s.hello.pattern == patternJoin {
		if len(s.psk) != 32 { // the library would mix in an empty one and go on
			return nil, errors.New("a join needs a key of 32 bytes")
		}
		c.PresharedKey, c.PresharedKeyPlacement = s.psk, 3
	}
	return noise.NewHandshakeState(c)
}

// initiate runs the dialler's side up to message 3. check judges the responder;
// its error ends the handshake before this side has said who it is.
func (s shake) initiate(rw io.ReadWriter, check func(party) error) (party, *records, error) {
	hs, err := s.state(true)
	if err != nil {
		return party{}, nil, err
	}
	m1, _, _, err := hs.WriteMessage(nil, nil)
	if err != nil {
		return party{}, nil, fmt.Errorf("write handshake: %w", err)
	}
	if _, err := rw.Write(appendMessage(appendMessage(nil, s.hello.encode()), m1)); err != nil {
		return party{}, nil, byPeer(err)
	}
	m2, err := readMessage(rw)
	if err != nil {
		return party{}, nil, err
	}
	payload, _, _, err := hs.ReadMessage(nil, m2)
	if err != nil {
		return party{}, nil, refuse(BadHandshake, "message 2")
	}
	peer, err := s.judge(hs, payload, check)
	if err != nil {
		return party{}, nil, err
	}
	m3, send, recv, err := hs.WriteMessage(nil, s.self)
	if err != nil {
		return party{}, nil, fmt.Errorf("write handshake: %w", err)
	}
	if _, err := rw.Write(appendMessage(nil, m3)); err != nil {
		return party{}, nil, byPeer(err)
	}
	rec := newRecords(rw, send, recv)
	copy(rec.binding[:], hs.ChannelBinding())
	return peer, rec, nil
}

// respond runs the other side. pskOf is asked for the key of a join token.
func (s shake) respond(rw io.ReadWriter, pskOf func(tokenID string) []byte, check func(hello, party) error) (party,
	hello, *records, error) {
	fail := func(err error) (party, hello, *records, error) { return party{}, hello{}, nil, err }
	h, err := readMessage(rw)
	if err != nil {
		return fail(err)
	}
	if s.hello, err = decodeHello(h); err != nil {
		return fail(err)
	}
	if s.hello.pattern == patternJoin {
		s.psk = pskOf(s.hello.tokenID)
	}
	hs, err := s.state(false)
	if err != nil {
		return fail(err)
	}
	m1, err := readMessage(rw)
	if err != nil {
		return fail(err)
	}
	if payload, _, _, err := hs.ReadMessage(nil, m1); err != nil || len(payload) > 0 {
		return fail(refuse(Malformed, "message 1"))
	}
	m2, _, _, err := hs.WriteMessage(nil, s.self)
	if err != nil {
		return fail(refuse(BadHandshake, "message 1")) // a low-order ephemeral key
	}
	if _, err := rw.Write(appendMessage(nil, m2)); err != nil {
		return fail(byPeer(err))
	}
	m3, err := readMessage(rw)
	if err != nil {
		return fail(err)
	}
	payload, recv, send, err := hs.ReadMessage(nil, m3)
	if err != nil {
		return fail(refuse(BadHandshake, "message 3"))
	}
	peer, err := s.judge(hs, payload, func(p party) error { return check(s.hello, p) })
	if err != nil {
		return fail(err)
	}
	rec := newRecords(rw, send, recv)
	copy(rec.binding[:], hs.ChannelBinding())
	return peer, s.hello, rec, nil
}

// judge decodes what the peer said, holds it against the key that the
// handshake has shown it to have, and asks check.
func (s shake) judge(hs *noise.HandshakeState, payload []byte, check func(party) error) (party, error) {
	p, err := decodeParty(payload)
	if err != nil {
		return party{}, err
	}
	if p.cert.Purpose != identity.ForNoise { // decodeParty has verified the signature
		return party{}, refuse(BadIdentity, "the certificate is for another purpose")
	}
	if string(p.cert.Static.Bytes()) != string(hs.PeerStatic()) {
		return party{}, refuse(BadIdentity, "the certificate is for another key")
	}
	if p.cert.Node.Equal(s.keys.Public()) {
		return party{}, refuse(WrongPeer, "this node itself answered")
	}
	return p, check(p)
}

func appendMessage(b, m []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(m))), m...)
}

// readMessage reads one handshake message. What does not look like one is
// refused as malformed; errors of the connection stay.
func readMessage(r io.Reader) ([]byte, error) {
	var h [2]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, cutShort(err)
	}
	n := binary.BigEndian.Uint16(h[:])
	if n == 0 || n > maxHandshakeMessage {
		return nil, refuse(Malformed, "handshake message of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, cutShort(err)
	}
	return b, nil
}

func cutShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return refuse(Malformed, "the handshake was cut short")
	}
	return byPeer(err)
}

// unknownPSK stands for the key of a token that is not known, so that probing
// for token IDs looks like a wrong key.
func unknownPSK() []byte {
	b := make([]byte, 32)
	rand.Read(b)
	return b
}
