package a2a

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/push"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// pushTries bounds how often a state is told to a webhook, pushWait is the wait before the second try; it doubles.
	pushTries = 5
	pushWait  = time.Second
	// pushTimeout bounds one call, pushTick how often the leader looks for what is due, pushAtOnce how many calls it
	// makes at the same time.
	pushTimeout = 10 * time.Second
	pushTick    = 250 * time.Millisecond
	pushAtOnce  = 8
)

// PusherConfig is what a pusher needs of its node.
type PusherConfig struct {
	View    func(func(*ledger.Tx) error) error
	Entries func(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
	Head    func() uint64
	Leads   func() bool
	// Submit submits a command of the node.
	Submit func(ctx context.Context, kind string, of ledger.CompanyID, payload any) error
	Unseal func(ctx context.Context, aad, sealed []byte) ([]byte, error)
	Mesh   string
	// Private lists networks that are not public but may be called.
	Private []netip.Prefix
	Logger  *slog.Logger
}

// A Pusher tells webhooks how their tasks go, while its node leads. What a webhook was told last is in its row, so that
// another leader goes on where this one stopped: a state is told at least once.
//
// Its goroutine is Run's; calls have goroutines that Run waits for.
type Pusher struct {
	conf   PusherConfig
	client *http.Client
	tries  map[string]attempt // by hook
	done   chan called
	calls  int
}

// An attempt is a state that could not be told yet.
type attempt struct {
	digest string
	n      int
	due    time.Time
	busy   bool
}

// called is the end of a call.
type called struct {
	hook   push.Hook
	digest string
	last   bool
	err    error
}

// NewPusher returns a pusher; its addresses are checked as those of the http adapter are.
func NewPusher(conf PusherConfig) *Pusher {
	dialer := &net.Dialer{Timeout: pushTimeout, Control: webcall.Guard(conf.Private)}
	return &Pusher{conf: conf, tries: map[string]attempt{}, done: make(chan called, pushAtOnce), client: &http.Client{
		Timeout: pushTimeout,
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
			TLSHandshakeTimeout: pushTimeout, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}, // the target of a redirect was not configured
	}}
}

// Run works until ctx ends.
func (p *Pusher) Run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for _, err := range p.conf.Entries(ctx, p.conf.Head()) {
			if err != nil {
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	defer func() { <-fed }()
	defer func() {
		for ; p.calls > 0; p.calls-- {
			<-p.done
		}
	}()
	led, looked, tick := false, time.Time{}, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-p.done:
			p.calls--
			p.ended(ctx, c)
		case <-changed:
		case <-tick:
		}
		if rest := pushTick - time.Since(looked); rest > 0 { // many entries are one look
			tick = time.After(rest)
			continue
		}
		tick, looked = nil, time.Now()
		leads := p.conf.Leads()
		if leads != led {
			clear(p.tries)
			led = leads
		}
		if leads && p.look(ctx) {
			tick = time.After(pushTick)
		}
	}
}

// look begins the calls that are due, and reports whether to look again soon.
func (p *Pusher) look(ctx context.Context) (again bool) {
	type due struct {
		hook push.Hook
		task Task
	}
	var list []due
	now := time.Now()
	err := p.conf.View(func(tx *ledger.Tx) error {
		for _, of := range entity.Companies(tx) {
			for h := range push.All(tx, of.ID) {
				i, ok := entity.IssueOf(tx, h.Company, h.Issue)
				if !ok {
					continue
				}
				t := taskOf(tx, i, view{history: new(0), artifacts: true})
				d := digest(struct {
					Status    Status
					Artifacts []Artifact
				}{Status{State: t.Status.State, Message: t.Status.Message}, t.Artifacts})
				text := hex.EncodeToString(d[:16])
				was := p.tries[h.ID]
				switch {
				case was.busy:
				case text == h.Told:
					delete(p.tries, h.ID)
				case was.digest == text && now.Before(was.due):
					again = true
				case p.calls+len(list) >= pushAtOnce:
					again = true
				default:
					if was.digest != text {
						was = attempt{digest: text}
					}
					was.busy = true
					p.tries[h.ID] = was
					list = append(list, due{h, t})
				}
			}
		}
		return nil
	})
	if err != nil {
		p.conf.Logger.Warn("look for push notifications", "error", err)
	}
	for _, d := range list {
		text := p.tries[d.hook.ID].digest
		p.calls++
		go func() {
			err := p.call(ctx, d.hook, d.task)
			p.done <- called{d.hook, text, d.task.Status.State.Terminal(), err}
		}()
	}
	return again
}

// ended notes what came of a call.
func (p *Pusher) ended(ctx context.Context, c called) {
	was := p.tries[c.hook.ID]
	was.busy = false
	if was.n++; c.err != nil {
		p.conf.Logger.Info("push notification failed", "company", c.hook.Company, "issue", c.hook.Issue, "try", was.n,
			"error", c.err)
	}
	if c.err != nil && was.n < pushTries {
		was.due = time.Now().Add(pushWait << (was.n - 1))
		p.tries[c.hook.ID] = was
		return
	}
	delete(p.tries, c.hook.ID)
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	err := p.conf.Submit(ctx, push.KindTold, c.hook.Company, push.Tell{ID: c.hook.ID, Digest: c.digest,
		Failed: c.err != nil, Last: c.last})
	if no, ok := errors.AsType[*ledger.Refusal](err); err != nil && !(ok && no.Code == ledger.NotFound) {
		p.conf.Logger.Warn("note a push notification", "error", err)
	}
}

// errAnswer is a webhook's refusal.
var errAnswer = errors.New("the webhook answered no success")

// call makes one call. Its error has no part of the address.
func (p *Pusher) call(ctx context.Context, h push.Hook, t Task) error {
	var auth struct {
		Token       string `json:"token"`
		Credentials string `json:"credentials"`
	}
	open, err := conceal.OpenConfig(h.Auth, push.AuthPath, func(path, sealed string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(sealed)
		if err != nil {
			return "", err
		}
		plain, err := p.conf.Unseal(ctx, conceal.ValueAAD(p.conf.Mesh, h.Company, h.ID, path), b)
		return string(plain), err
	})
	if err != nil {
		return errors.New("its credentials can not be opened on this node")
	}
	if len(open) > 0 {
		if err := json.Unmarshal(open, &auth); err != nil {
			return errors.New("its credentials are malformed")
		}
	}
	body, err := json.Marshal(event{Task: &t})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("its address is malformed")
	}
	req.Header.Set("Content-Type", mediaType)
	req.Header.Set("A2A-Version", Version)
	if auth.Token != "" {
		req.Header.Set("X-A2A-Notification-Token", auth.Token)
	}
	if h.Scheme != "" && auth.Credentials != "" {
		req.Header.Set("Authorization", h.Scheme+" "+auth.Credentials)
	}
	res, err := p.client.Do(req)
	switch {
	case errors.Is(err, webcall.ErrPrivate):
		return webcall.ErrPrivate
	case err != nil:
		return errors.New("the webhook can not be reached")
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // its status is the answer
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%w: %d", errAnswer, res.StatusCode)
	}
	return nil
}
