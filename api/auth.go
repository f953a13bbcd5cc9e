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

	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	headerRun = "X-Paperclip-Run-Id"

	// LocalBoard is the user of requests on loopback without a credential.
	LocalBoard = people.LocalBoard
)

var (
	ErrBearer    = Unauthorized("Agent token did not verify; obtain fresh credentials and retry")
	errBoardOnly = Forbidden("Board access required")
	errAgentOnly = Unauthorized("Agent authentication required")
	// errProcessOnly is for a process that asks for more than its messages.
	errProcessOnly = Forbidden("The token of a process is for its messages: /api/v1/ipc. Give the process another key " +
		"in SELVAGE_API_KEY if it is to do more")
	errForeign  = Forbidden("Agent key cannot access another company")
	errOtherRun = &ledger.Refusal{Code: ledger.Unprocessable, ErrCode: "agent_jwt_run_id_mismatch",
		Message: "X-Paperclip-Run-Id does not match the run that the token was issued for"}
)

// Open authenticates the caller and checks that the route admits it.
func (rc *Request) Open() (err error) {
	r := rc.HTTP
	if r.URL.RawQuery != "" {
		if rc.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			return Invalid("The query of the URL is malformed")
		}
	}
	if rc.Read, err = readOf(r); err != nil {
		return err
	}
	if err := checkIdempotencyKey(r.Header.Get(HeaderIdempotency)); err != nil {
		return err
	}
	if rc.Route.Who == Public {
		rc.Actor = ledger.Actor{Type: "user", ID: LocalBoard}
		return rc.limitKeys()
	}
	if err := rc.catchUp(); err != nil {
		return err
	}
	if err := rc.authenticateAsOf(); errors.Is(err, ErrNobody) {
		return rc.refuseNobody()
	} else if err != nil {
		return err
	}
	switch {
	case (rc.Route.Who == Board || rc.Route.Who == Admin) && !rc.IsBoard():
		return errBoardOnly
	case rc.Route.Who == Agent && !rc.IsAgent():
		return errAgentOnly
	}
	if id := rc.Path("companyId"); rc.IsAgent() && id != "" && !strings.EqualFold(id, string(rc.Company)) {
		return errForeign
	}
	if err := rc.checkPerson(); err != nil {
		return err
	}
	return rc.limitKeys()
}

// limitKeys bounds how often a caller creates and revokes credentials, except the machine's
// own user.
func (rc *Request) limitKeys() error {
	if rc.Server.TrustsAll() || !rc.Route.Limited {
		return nil
	}
	if rc.Route.Who == Public {
		return rc.Limited("keys", KeyRate)
	}
	return rc.Limited("keys", KeyRate, rc.Actor.Type+" "+rc.Actor.ID)
}

// Authenticate reads the bearer, or else the cookie of a session. Without either the caller
// is the board in local_trusted mode, where everybody on loopback except runs is, and
// otherwise nobody: ErrNobody.
func (rc *Request) Authenticate() error {
	if rc.byWithin() {
		return nil
	}
	run := rc.HTTP.Header.Get(headerRun)
	if run != "" && !IsUUID(run) {
		return Invalid("Invalid %s: expected a run's UUID", headerRun)
	}
	run = strings.ToLower(run)
	if token, ok := capTokenOf(rc.HTTP); ok {
		return rc.byCapToken(token, run)
	}
	token, given, err := bearerOf(rc.HTTP)
	if err != nil {
		return err
	}
	switch {
	case !given && !rc.Server.TrustsAll():
		if rc.Server.Mode() == "" {
			return Unavailable("This node does not know its mesh yet; try again")
		}
		if token, ok := CookieToken(rc.HTTP); ok {
			return rc.BySession(token)
		}
		return ErrNobody
	case !given:
		if err := rc.Server.NotARun(rc.HTTP.Context()); err != nil {
			return err
		}
		rc.Actor = ledger.Actor{Type: "user", ID: LocalBoard}
		rc.Credential = ledger.Credential{Kind: "local"}
		return nil
	case identity.LooksLikeRunToken(token):
		return rc.byRunToken(token, run)
	case strings.HasPrefix(token, courier.TokenPrefix):
		return rc.byProcessToken(token)
	}
	if strings.HasPrefix(token, BoardTokenPrefix) {
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

// bearerOf returns the bearer of the Authorization header, or of ?token= on the live-events
// socket, because browsers can not set its headers.
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
	return ParseBearer(header)
}

// ParseBearer reads the values of an Authorization header. It accepts exactly one bearer.
func ParseBearer(header []string) (token string, given bool, err error) {
	if len(header) != 1 || len(header[0]) > maxBearer+16 {
		return "", true, ErrBearer
	}
	scheme, token, ok := strings.Cut(strings.TrimSpace(header[0]), " ")
	token = strings.TrimSpace(token)
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxBearer {
		return "", true, ErrBearer
	}
	for i := range len(token) {
		if token[i] <= 0x20 || token[i] >= 0x7f {
			return "", true, ErrBearer
		}
	}
	return token, true, nil
}

// byProcessToken admits a process of this node to the routes that are for processes.
func (rc *Request) byProcessToken(token string) error {
	post := rc.Server.Cfg.Post
	if post == nil {
		return ErrBearer
	}
	e, ok := post.Holder(token)
	if !ok {
		return Unauthorized("The token of a process did not verify: it is known on the node that started the process, " +
			"while it lives")
	}
	if rc.Route == nil || !rc.Route.Processes {
		return errProcessOnly
	}
	rc.Actor, rc.Credential = ledger.Actor{Type: "process", ID: rc.Server.Cfg.Name + ":" + e.PID.String()},
		ledger.Credential{Kind: "process", ID: e.PID.String()}
	rc.Company = ledger.CompanyID(e.Company)
	return nil
}

func (rc *Request) byRunToken(token, run string) error {
	s := rc.Server
	if s.Cfg.DataKeys == nil {
		return ErrBearer
	}
	c, err := identity.VerifyRunToken(token, s.Cfg.DataKeys(), s.Cfg.Mesh, rc.Now())
	if err != nil {
		return ErrBearer
	}
	if run != "" && run != c.Run {
		return errOtherRun
	}
	alive, err := rc.StillTrue(func(tx *ledger.Tx) bool { return runSpeaks(tx, c) })
	if err != nil {
		return err
	}
	if !alive {
		return ErrBearer
	}
	rc.Actor = ledger.Actor{Type: "agent", ID: c.Agent}
	rc.Credential = ledger.Credential{Kind: "run", ID: c.Run}
	rc.Company, rc.Run = ledger.CompanyID(c.Company), c.Run
	return nil
}

// A Holder is the actor that a key stands for.
type Holder struct {
	Actor   ledger.Actor
	Cred    ledger.Credential
	Company ledger.CompanyID // of an agent
	Until   core.Time        // when the key ends; 0: never
}

func (h Holder) enter(rc *Request) {
	rc.Actor, rc.Credential, rc.Company, rc.KeyID = h.Actor, h.Cred, h.Company, h.Cred.ID
}

func agentKeyOpens(tx *ledger.Tx, hash string, _ core.Time) (Holder, bool) {
	key, ok := people.KeyByHash(tx, hash)
	return Holder{Actor: ledger.Actor{Type: "agent", ID: key.Agent}, Cred: ledger.Credential{Kind: "agent_key",
			ID: key.ID}, Company: key.Company},
		ok && key.RevokedAt == 0 && agentSpeaks(tx, key.Agent)
}

func boardKeyOpens(tx *ledger.Tx, hash string, now core.Time) (Holder, bool) {
	key, ok := people.BoardKeyByHash(tx, hash)
	_, known := people.PersonOf(tx, key.User)
	return Holder{Actor: ledger.Actor{Type: "user", ID: key.User}, Cred: ledger.Credential{Kind: "board_key", ID: key.ID},
			Until: key.ExpiresAt},
		ok && known && people.Speaks(tx, key.User) && key.Valid(now)
}

// byKey returns the holder of a token of a kind; opens looks its hash (hex) up. A token that
// was used as another kind before is refused.
func (rc *Request) byKey(token, kind string,
	opens func(tx *ledger.Tx, hash string, now core.Time) (Holder, bool)) (who Holder, err error) {
	hash := sha256.Sum256([]byte(token))
	least := rc.least()
	if who, ok := rc.Server.Keys.Find(hash, least, rc.Now()); ok && who.Cred.Kind == kind {
		return who, nil
	}
	generation := rc.Server.Keys.Generation()
	ok, err := rc.StillTrue(func(tx *ledger.Tx) (ok bool) {
		who, ok = opens(tx, hex.EncodeToString(hash[:]), core.TimeOf(rc.Now()))
		return ok
	})
	if err != nil {
		return who, err
	}
	if !ok {
		return who, ErrBearer
	}
	rc.Server.Keys.Keep(hash, who, generation, least, rc.Now())
	return who, nil
}

// agentSpeaks reports whether an agent may use the API: not when it was terminated or waits
// for approval.
func agentSpeaks(tx *ledger.Tx, id string) bool {
	a, ok := entity.AgentByID(tx, id)
	return ok && a.Status != entity.AgentTerminated && a.Status != entity.AgentPendingApproval
}

// runSpeaks reports whether a run token belongs to a run that has not ended.
func runSpeaks(tx *ledger.Tx, c identity.RunClaims) bool {
	r, ok := entity.RunOf(tx, ledger.CompanyID(c.Company), c.Run)
	return ok && r.Agent == c.Agent && r.Status.Live() && agentSpeaks(tx, c.Agent)
}

// StillTrue asks this node's state, and when that says no, the newest state: a credential
// that was created on another node a moment ago is valid here too. Only a few callers may
// ask for the newest state at the same time, so that unknown bearers do not overload the
// leader.
func (rc *Request) StillTrue(is func(*ledger.Tx) bool) (ok bool, err error) {
	look := func(at ledger.Read) error {
		_, err := rc.Server.Cfg.Node.View(rc.Context(), at, func(tx *ledger.Tx) error {
			ok = is(tx)
			return nil
		})
		return err
	}
	if err := look(ledger.Read{Mode: ledger.ReadStale}); err != nil || ok {
		return ok, err
	}
	if rc.Read.Mode == ledger.ReadStale {
		return false, nil
	}
	select {
	case rc.Server.strong <- struct{}{}:
		defer func() { <-rc.Server.strong }()
	case <-rc.Context().Done():
		return false, rc.Context().Err()
	}
	if look(ledger.Read{Mode: ledger.ReadStrong}) != nil {
		return ok, nil // without a quorum this node's state decides
	}
	return ok, nil
}

// ViewBySecret is View for a caller who shows a secret in the path or body instead of a
// credential. When f finds nothing, it is called again on the newest state: the secret may
// have been created on another node a moment ago.
func (rc *Request) ViewBySecret(f func(*ledger.Tx) error) error {
	err := rc.View(f)
	if no, ok := errors.AsType[*ledger.Refusal](err); !ok || no.Code != ledger.NotFound {
		return err
	}
	if _, err := rc.StillTrue(func(tx *ledger.Tx) bool { return f(tx) == nil }); err != nil {
		return err
	}
	return rc.View(f)
}

// A keyCache caches keys by the hash of their token. An entry of the feed that may revoke a
// key clears it, and each key expires after KeyAge. A caller who names a height is served
// only from what is known to hold there. Apply checks every credential again.
type keyCache struct {
	mu   sync.Mutex // guards all below
	Keys map[[32]byte]cachedKey
	gen  uint64 // counts invalidations
	seen uint64 // raft index to which the feed was followed; what is cached held there
}

type cachedKey struct {
	Holder
	fresh time.Time // valid until then
	at    uint64    // least raft index of the state in which the key was looked up
}

// Find returns the holder of a key as of a raft index or later.
func (c *keyCache) Find(hash [32]byte, least uint64, now time.Time) (Holder, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.Keys[hash]
	return k.Holder, ok && max(k.at, c.seen) >= least && now.Before(k.fresh) &&
		(k.Until == 0 || core.TimeOf(now) < k.Until)
}

// Follow notes an entry of the feed: all batches before its batch have been seen completely.
func (c *keyCache) Follow(index uint64, ends bool) {
	if ends {
		c.Drop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = max(c.seen, index-1)
}

func (c *keyCache) Generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gen
}

// Keep caches a key, unless keys were invalidated since it was read.
func (c *keyCache) Keep(hash [32]byte, k Holder, gen, at uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gen != c.gen {
		return
	}
	if c.Keys == nil || len(c.Keys) >= maxKeys {
		c.Keys = make(map[[32]byte]cachedKey, 64)
	}
	c.Keys[hash] = cachedKey{k, now.Add(KeyAge), at}
}

func (c *keyCache) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	clear(c.Keys)
}

// followKeys clears cached keys when an entry may have revoked one: by a change of an agent,
// its keys, or its company. It begins above a height that was read before any key or mode.
func (s *Server) followKeys(after uint64) {
	for s.Ctx.Err() == nil {
		for e, err := range s.Cfg.Node.Entries(s.Ctx, after) {
			if err != nil {
				break
			}
			after = e.Height
			if e.Kind == ledger.KindGenesis || e.Kind == people.KindInstanceAuth {
				s.LearnMode(s.Ctx, 0)
			}
			s.Keys.Follow(e.Index, endsKeys(e.Kind))
		}
		s.LearnMode(s.Ctx, 0)
		s.Keys.Drop()
		select { // the feed broke: it is closed, or could not be read
		case <-s.Ctx.Done():
		case <-time.After(KeyAge):
		}
	}
}

// endsKeys reports whether a kind of command may revoke a credential or what it opens.
// Streams then check again whether their reader may still read.
func endsKeys(kind string) bool {
	row, _ := company.KindOf(kind)
	return row.Has(company.EndsKeys)
}

// Prefixes of tokens, and their number of random bytes.
const (
	BoardTokenPrefix = "pcp_board_"
	// TokenPrefix marks agent tokens; TokenBytes of randomness follow in hex.
	TokenPrefix = "pcp_"
	TokenBytes  = 24
)
