package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	headerRun = "X-Paperclip-Run-Id"

	// LocalBoard is the user who speaks on loopback without a credential.
	LocalBoard = people.LocalBoard
)

var (
	errBearer    = Unauthorized("Agent token did not verify; obtain fresh credentials and retry")
	errBoardOnly = Forbidden("Board access required")
	errAgentOnly = Unauthorized("Agent authentication required")
	errForeign   = Forbidden("Agent key cannot access another company")
	errOtherRun  = &ledger.Refusal{Code: ledger.Unprocessable, ErrCode: "agent_jwt_run_id_mismatch",
		Message: "X-Paperclip-Run-Id does not match the run that the token was issued for"}
)

// open finds out who asks, what for, and whether the route is for them.
func (rc *Request) open() (err error) {
	r := rc.HTTP
	if r.URL.RawQuery != "" {
		if rc.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return Invalid("The query of the URL is malformed")
		}
	}
	if rc.read, err = readOf(r); err != nil {
		return err
	}
	if err := checkIdempotencyKey(r.Header.Get(headerIdempotency)); err != nil {
		return err
	}
	if rc.route.Who == Public {
		rc.Actor = ledger.Actor{Type: "user", ID: LocalBoard}
		return rc.limitKeys()
	}
	if err := rc.catchUp(); err != nil {
		return err
	}
	if err := rc.authenticateAsOf(); errors.Is(err, errNobody) {
		return rc.refuseNobody()
	} else if err != nil {
		return err
	}
	switch {
	case (rc.route.Who == Board || rc.route.Who == Admin) && !rc.IsBoard():
		return errBoardOnly
	case rc.route.Who == Agent && !rc.IsAgent():
		return errAgentOnly
	}
	if id := rc.Path("companyId"); rc.IsAgent() && id != "" && !strings.EqualFold(id, rc.Company) {
		return errForeign
	}
	if err := rc.checkPerson(); err != nil {
		return err
	}
	return rc.limitKeys()
}

// limitKeys bounds how often credentials are made and taken away, where it is
// not the machine's own user who asks.
func (rc *Request) limitKeys() error {
	if rc.server.trustsAll() || !rc.route.Limited {
		return nil
	}
	if rc.route.Who == Public {
		return rc.limited("keys", keyRate)
	}
	return rc.limited("keys", keyRate, rc.Actor.Type+" "+rc.Actor.ID)
}

// authenticate reads the bearer, or else the cookie of a session. Without either
// it is the board who asks in local_trusted mode, where whoever reaches loopback
// is but for runs, and otherwise nobody: errNobody.
func (rc *Request) authenticate() error {
	token, given, err := bearerOf(rc.HTTP)
	if err != nil {
		return err
	}
	run := rc.HTTP.Header.Get(headerRun)
	if run != "" && !IsUUID(run) {
		return Invalid("Invalid %s: expected a run's UUID", headerRun)
	}
	run = strings.ToLower(run)
	switch {
	case !given && !rc.server.trustsAll():
		if rc.server.Mode() == "" {
			return Unavailable("This node does not know its mesh yet; try again")
		}
		if token, ok := cookieToken(rc.HTTP); ok {
			return rc.bySession(token)
		}
		return errNobody
	case !given:
		if err := rc.server.notARun(rc.HTTP.Context()); err != nil {
			return err
		}
		rc.Actor = ledger.Actor{Type: "user", ID: LocalBoard}
		rc.Credential = ledger.Credential{Kind: "local"}
		return nil
	case identity.LooksLikeRunToken(token):
		return rc.byRunToken(token, run)
	}
	if strings.HasPrefix(token, boardTokenPrefix) {
		who, err := rc.byKey(token, "board_key", boardKeyOpens)
		if err != nil {
			return err
		}
		who.enter(rc)
		return nil
	}
	who, err := rc.byKey(token, "agent_key", agentKeyOpens)
	if err != nil {
		return err
	}
	who.enter(rc)
	rc.Run = run
	return nil
}

// bearerOf returns the bearer of the Authorization header, or of ?token= on the
// live-events socket, which browsers can not give headers to.
func bearerOf(r *http.Request) (token string, given bool, err error) {
	header := r.Header["Authorization"]
	if len(header) == 0 {
		if strings.HasSuffix(r.URL.Path, "/events/ws") {
			if token = r.URL.Query().Get("token"); token != "" {
				return token, true, nil
			}
		}
		return "", false, nil
	}
	return parseBearer(header)
}

// parseBearer reads the values of an Authorization header; exactly one bearer
// is allowed, everything else does not verify.
func parseBearer(header []string) (token string, given bool, err error) {
	if len(header) != 1 || len(header[0]) > maxBearer+16 {
		return "", true, errBearer
	}
	scheme, token, ok := strings.Cut(strings.TrimSpace(header[0]), " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxBearer {
		return "", true, errBearer
	}
	for i := range len(token) {
		if token[i] <= 0x20 || token[i] >= 0x7f {
			return "", true, errBearer
		}
	}
	return token, true, nil
}

func (rc *Request) byRunToken(token, run string) error {
	s := rc.server
	if s.cfg.DataKeys == nil {
		return errBearer
	}
	c, err := identity.VerifyRunToken(token, s.cfg.DataKeys(), s.cfg.Mesh, time.Now())
	if err != nil {
		return errBearer
	}
	if run != "" && run != c.Run {
		return errOtherRun
	}
	alive, err := rc.stillTrue(func(tx *ledger.Tx) bool { return runSpeaks(tx, c) })
	if err != nil {
		return err
	}
	if !alive {
		return errBearer
	}
	rc.Actor = ledger.Actor{Type: "agent", ID: c.Agent}
	rc.Credential = ledger.Credential{Kind: "run", ID: c.Run}
	rc.Company, rc.Run = c.Company, c.Run
	return nil
}

// A holder is who a key stands for.
type holder struct {
	actor   ledger.Actor
	cred    ledger.Credential
	company string    // of an agent
	until   core.Time // when the key ends; 0: never
}

func (h holder) enter(rc *Request) {
	rc.Actor, rc.Credential, rc.Company, rc.KeyID = h.actor, h.cred, h.company, h.cred.ID
}

func agentKeyOpens(tx *ledger.Tx, hash string) (holder, bool) {
	key, ok := people.KeyByHash(tx, hash)
	return holder{actor: ledger.Actor{Type: "agent", ID: key.Agent}, cred: ledger.Credential{Kind: "agent_key", ID: key.ID}, company: key.Company},
		ok && key.RevokedAt == 0 && agentSpeaks(tx, key.Agent)
}

func boardKeyOpens(tx *ledger.Tx, hash string) (holder, bool) {
	key, ok := people.BoardKeyByHash(tx, hash)
	_, known := people.PersonOf(tx, key.User)
	return holder{actor: ledger.Actor{Type: "user", ID: key.User}, cred: ledger.Credential{Kind: "board_key", ID: key.ID}, until: key.ExpiresAt},
		ok && known && people.Speaks(tx, key.User) && key.Valid(core.TimeOf(time.Now()))
}

// byKey finds who a token of a kind stands for; opens looks its hash (hex) up.
// One that was shown as another kind before is none of this.
func (rc *Request) byKey(token, kind string, opens func(*ledger.Tx, string) (holder, bool)) (who holder, err error) {
	hash := sha256.Sum256([]byte(token))
	least := rc.least()
	if who, ok := rc.server.keys.find(hash, least, time.Now()); ok && who.cred.Kind == kind {
		return who, nil
	}
	generation := rc.server.keys.generation()
	ok, err := rc.stillTrue(func(tx *ledger.Tx) (ok bool) {
		who, ok = opens(tx, hex.EncodeToString(hash[:]))
		return ok
	})
	if err != nil {
		return who, err
	}
	if !ok {
		return who, errBearer
	}
	rc.server.keys.keep(hash, who, generation, least, time.Now())
	return who, nil
}

// agentSpeaks reports whether an agent may use the API: one that is gone or
// waits for approval may not.
func agentSpeaks(tx *ledger.Tx, id string) bool {
	a, ok := company.AgentByID(tx, id)
	return ok && a.Status != company.AgentTerminated && a.Status != company.AgentPendingApproval
}

// runSpeaks reports whether a run token still stands for a run that goes on.
func runSpeaks(tx *ledger.Tx, c identity.RunClaims) bool {
	r, ok := company.RunOf(tx, c.Company, c.Run)
	return ok && r.Agent == c.Agent && r.Status.Live() && agentSpeaks(tx, c.Agent)
}

// stillTrue asks this node's state, and when that says no, the newest one: a
// credential that was made on another node a moment ago is good here too. Few
// may ask the latter at once, so that unknown bearers can not wear the leader out.
func (rc *Request) stillTrue(is func(*ledger.Tx) bool) (ok bool, err error) {
	look := func(at ledger.Read) error {
		_, err := rc.server.cfg.Node.View(rc.Context(), at, func(tx *ledger.Tx) error {
			ok = is(tx)
			return nil
		})
		return err
	}
	if err := look(ledger.Read{Mode: ledger.ReadStale}); err != nil || ok {
		return ok, err
	}
	if rc.read.Mode == ledger.ReadStale {
		return false, nil
	}
	select {
	case rc.server.strong <- struct{}{}:
		defer func() { <-rc.server.strong }()
	case <-rc.Context().Done():
		return false, rc.Context().Err()
	}
	if look(ledger.Read{Mode: ledger.ReadStrong}) != nil {
		return ok, nil // without a quorum what this node knows must do
	}
	return ok, nil
}

// viewBySecret is View for who shows a secret of the path or body in place of a
// credential. When f finds nothing by it, it looks once more at the newest state: the
// secret may have been made on another node a moment ago.
func (rc *Request) viewBySecret(f func(*ledger.Tx) error) error {
	err := rc.View(f)
	if no, ok := errors.AsType[*ledger.Refusal](err); !ok || no.Code != ledger.NotFound {
		return err
	}
	if _, err := rc.stillTrue(func(tx *ledger.Tx) bool { return f(tx) == nil }); err != nil {
		return err
	}
	return rc.View(f)
}

// A keyCache remembers keys by the hash of their token. It is dropped
// when the feed tells of a change that may end a key, and on its own after
// keyAge. It answers a caller who brings a height only with what is known to
// have held there. Apply checks every credential again.
type keyCache struct {
	mu   sync.Mutex // guards all below
	keys map[[32]byte]cachedKey
	gen  uint64 // counts invalidations
	seen uint64 // raft index to which the feed was followed; what is remembered held there
}

type cachedKey struct {
	holder
	fresh time.Time // until then
	at    uint64    // raft index that the state had at least when the key was looked up
}

// find returns whom a key stands for as of a raft index, or later.
func (c *keyCache) find(hash [32]byte, least uint64, now time.Time) (holder, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.keys[hash]
	return k.holder, ok && max(k.at, c.seen) >= least && now.Before(k.fresh) && (k.until == 0 || core.TimeOf(now) < k.until)
}

// follow notes an entry of the feed: all batches before its own are seen whole.
func (c *keyCache) follow(index uint64, ends bool) {
	if ends {
		c.drop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, index-1)
}

func (c *keyCache) generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gen
}

// keep remembers a key, unless keys were invalidated since it was read.
func (c *keyCache) keep(hash [32]byte, k holder, gen, at uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gen != c.gen {
		return
	}
	if c.keys == nil || len(c.keys) >= maxKeys {
		c.keys = make(map[[32]byte]cachedKey, 64)
	}
	c.keys[hash] = cachedKey{k, now.Add(keyAge), at}
}

func (c *keyCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	clear(c.keys)
}

// followKeys drops remembered keys when something may have ended one: a change
// of an agent itself, its keys, or its company. It begins above a height that was
// asked for before any key or mode was read.
func (s *Server) followKeys(after uint64) {
	for s.ctx.Err() == nil {
		for e, err := range s.cfg.Node.Entries(s.ctx, after) {
			if err != nil {
				break
			}
			after = e.Height
			if e.Kind == ledger.KindGenesis || e.Kind == people.KindInstanceAuth {
				s.learnMode(s.ctx, 0)
			}
			s.keys.follow(e.Index, endsKeys(e.Kind))
		}
		s.learnMode(s.ctx, 0)
		s.keys.drop()
		select { // the feed broke off: it is closed, or could not be read
		case <-s.ctx.Done():
		case <-time.After(keyAge):
		}
	}
}

// endsKeys reports whether a kind of command may end a credential, or what one opens:
// streams look again whether their reader still may.
func endsKeys(kind string) bool {
	row, _ := company.KindOf(kind)
	return row.Has(company.EndsKeys)
}

// What tokens begin with, and how many bytes of chance they have.
const (
	boardTokenPrefix = "pcp_board_"
	// tokenPrefix marks agent tokens; tokenBytes of randomness follow in hex.
	tokenPrefix = "pcp_"
	tokenBytes  = 24
)
