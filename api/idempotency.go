package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

const HeaderIdempotency = "Idempotency-Key"

// identify gives a command the request's Idempotency-Key. The ledger then answers a
// repetition with the first outcome, refusals included, and refuses the same key with another
// request. The digest covers method, path and body, under a key of the mesh: it is stored,
// and the body may hold a secret that could be guessed. Further commands of the same request
// get the key with a number.
func (rc *Request) identify(cmd *ledger.Command) error {
	key := rc.HTTP.Header.Get(HeaderIdempotency)
	if key == "" || rc.HTTP.Method != "POST" {
		return nil
	}
	var under []byte
	if digestKey := rc.Server.Cfg.DigestKey; digestKey != nil {
		k, ok := digestKey()
		if !ok {
			return Unavailable("This node does not hold the mesh's data key and can not take an Idempotency-Key; ask another " +
				"node")
		}
		under = k[:]
	}
	if rc.Submits > 0 {
		key += "#" + strconv.Itoa(rc.Submits+1)
	}
	body, _ := rc.RawBody() // an incomplete body was refused before
	cmd.IdempotencyKey, cmd.RequestDigest = key, requestDigest(under, rc.HTTP.Method, rc.HTTP.URL.RequestURI(), body)
	return nil
}

// Ids returns the generator of IDs for a request that creates a company. With an
// Idempotency-Key the IDs are derived from it: the ledger's record of a request is stored
// with its company, so a repetition must use the same company.
func (rc *Request) Ids() func() string {
	key := rc.HTTP.Header.Get(HeaderIdempotency)
	if key == "" {
		return NewID
	}
	n := 0
	return func() string {
		n++
		h := sha256.New()
		for _, part := range []string{"selvage/request-id/v1", string(rc.Server.Cfg.Mesh), rc.Actor.Type, rc.Actor.ID, key,
			strconv.Itoa(n)} {
			fmt.Fprintf(h, "%d:%s", len(part), part)
		}
		id := uuid.UUID(h.Sum(nil)[:16])
		id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8
		return id.String()
	}
}

func requestDigest(under []byte, method, path string, body []byte) [32]byte {
	h := sha256.New()
	if under != nil {
		h = hmac.New(sha256.New, under)
	}
	fmt.Fprintf(h, "%d:%s%d:%s", len(method), method, len(path), path)
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

func checkIdempotencyKey(key string) error {
	if len(key) > maxIdempotencyKey {
		return Invalid("Idempotency-Key is longer than %d bytes", maxIdempotencyKey)
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return Invalid("Idempotency-Key has characters that are not printable ASCII")
		}
	}
	return nil
}

// Secret returns n random bytes (at most 32) for a secret that is shown once. With an
// Idempotency-Key they are derived from the key, the request and the mesh's own key, so that
// a repetition on any node shows the same secret.
func (rc *Request) Secret(label string, n int) []byte {
	key := rc.HTTP.Header.Get(HeaderIdempotency)
	var keys []identity.DataKey
	if rc.Server.Cfg.DataKeys != nil {
		keys = rc.Server.Cfg.DataKeys()
	}
	if key == "" || len(keys) == 0 {
		b := make([]byte, n)
		rand.Read(b)
		return b
	}
	body, _ := rc.RawBody()
	digest := requestDigest(nil, rc.HTTP.Method, rc.HTTP.URL.RequestURI(), body)
	m := hmac.New(sha256.New, keys[0][:])
	fmt.Fprintf(m, "secret %q %q %q %q %x", label, rc.Actor.Type, rc.Actor.ID, key, digest)
	return m.Sum(nil)[:n]
}

// submit submits a command to the node and measures its time.
func (s *Server) submit(ctx context.Context, cmd ledger.Command) (ledger.Receipt, error) {
	began := time.Now()
	r, err := s.Cfg.Node.Submit(ctx, cmd)
	s.metrics.submitted(cmd.Kind, r, err, time.Since(began))
	if endsKeys(cmd.Kind) {
		s.Keys.Drop() // the feed would say so too, a moment later
		if cmd.Kind == people.KindInstanceAuth {
			s.LearnMode(ctx, r.Index)
		}
	}
	return r, err
}
