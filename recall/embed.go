package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	company "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/memory"
)

const (
	// batchTexts and batchBytes bound the texts of one call of a model, mostText what is
	// sent of one: sentence models read some hundred words.
	batchTexts = 32
	batchBytes = 48 << 10
	mostText   = 6 << 10
	// leastText is how short a text is cut before it is left alone.
	leastText = 256
	// batchVectors bounds the bytes of vectors in one command.
	batchVectors = 160 << 10
	// callWait bounds a call for texts, askWait one for a question: somebody waits for it.
	callWait = 2 * time.Minute
	askWait  = 5 * time.Second
	// retryFirst doubles up to retryMost after calls that failed. lookEvery is how often
	// companies are looked at of which nothing is heard: a wait is over, it is this node's
	// turn, or it may act now.
	retryFirst = 5 * time.Second
	retryMost  = 5 * time.Minute
	lookEvery  = 5 * time.Second
	// maxCached bounds the vectors that are kept by the content that they are of.
	maxCached = 1024
	// maxHopeless bounds the texts of a company that a model did not take.
	maxHopeless = 1000
)

// ErrTexts is what Config.Embed answers when a model will never take one of the texts.
var ErrTexts = errors.New("the model does not take these texts")

// A Payer is whose money a call takes.
type Payer struct {
	Company ledger.CompanyID
	Agent   string
}

// An Embedder has a model of the gateway embed texts. Mine reports whether this node is the
// one that embeds what a company remembers, Submit has a command of the node carried out.
type Embedder struct {
	Embed  func(ctx context.Context, who Payer, model string, texts []string) ([][]float32, error)
	Mine   func(tx *ledger.Tx, of ledger.CompanyID, model string) bool
	Submit func(ctx context.Context, kind string, of ledger.CompanyID, payload any) error
}

// An Embedding says how far the vectors of a company's model are.
type Embedding struct {
	Model    string // with its version
	Agent    string // who pays
	Done, Of int
	Hopeless int    // texts that the model did not take
	Problem  string // why this node can not embed now, "" for no reason
}

// A work is what a node knows of the embedding of a company.
type work struct {
	model    string
	most     int // of a text, as far as the model takes
	hopeless map[memory.ID]string
	problem  string
	wait     time.Duration
	until    time.Time // nothing is tried before
}

// An embedding is the part of a Recall that calls models.
type embedding struct {
	mu    sync.Mutex // guards what follows
	works map[ledger.CompanyID]*work
	cache map[[32]byte][]float32
	order [][32]byte // of the cache, the oldest first
	wake  chan struct{}
}

func newEmbedding() embedding {
	return embedding{works: map[ledger.CompanyID]*work{}, cache: map[[32]byte][]float32{}, wake: make(chan struct{}, 1)}
}

func (e *embedding) stir() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *embedding) of(company ledger.CompanyID, model string) *work {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.works[company]
	if w == nil || w.model != model {
		w = &work{model: model, most: mostText, hopeless: map[memory.ID]string{}}
		e.works[company] = w
	}
	return w
}

func cacheKey(of ledger.CompanyID, model, text string) [32]byte {
	return sha256.Sum256([]byte(string(of) + "\x00" + model + "\x00" + text))
}

func (e *embedding) known(key [32]byte) []float32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cache[key]
}

func (e *embedding) keep(key [32]byte, v []float32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.cache[key]; ok {
		return
	}
	if len(e.order) == maxCached {
		delete(e.cache, e.order[0])
		e.order = e.order[1:]
	}
	e.cache[key], e.order = v, append(e.order, key)
}

// Question embeds a question by the model of a company, paid by who asks or, where that is
// "", by the agent of the setting. Without a model, or when most of the company has no
// vector of it yet, it answers no vector. An error says why the model did not answer:
// the question is compared by its words then.
func (r *Recall) Question(ctx context.Context, of ledger.CompanyID, agent, text string) (model string, vector []float32,
	err error) {
	if r.cfg.Embedder.Embed == nil || text == "" {
		return "", nil, nil
	}
	var set company.Embedding
	if err := r.cfg.View(func(tx *ledger.Tx) error { set = company.EmbeddingFor(tx, of); return nil }); err != nil ||
		set.Model == "" {
		return "", nil, err
	}
	_, left, all := r.shelf(of, true).c.Unembedded(set.Name(), 0)
	if all == 0 || left*2 > all {
		return "", nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	who := Payer{of, cmp.Or(agent, string(set.Agent))}
	got, err := r.vectors(ctx, who, cmp.Or(set.Question, set.Model), set.Version, []string{text})
	if err != nil {
		return "", nil, err
	}
	return set.Name(), got[0], nil
}

// vectors returns the vectors of texts, from the cache as far as they are there.
func (r *Recall) vectors(ctx context.Context, who Payer, model, version string, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	ask, at := []string{}, map[string]int{} // each text once
	for n, text := range texts {
		if out[n] = r.embed.known(cacheKey(who.Company, model+"@"+version, text)); out[n] == nil {
			if _, ok := at[text]; !ok {
				at[text] = len(ask)
				ask = append(ask, text)
			}
		}
	}
	if len(ask) == 0 {
		return out, nil
	}
	got, err := r.cfg.Embedder.Embed(ctx, who, model, ask)
	if err != nil {
		return nil, err
	}
	for n, text := range texts {
		if out[n] == nil {
			out[n] = got[at[text]]
			r.embed.keep(cacheKey(who.Company, model+"@"+version, text), out[n])
		}
	}
	return out, nil
}

// Embedding says how far the vectors of a company are.
func (r *Recall) Embedding(tx *ledger.Tx, of ledger.CompanyID) (Embedding, bool) {
	set := company.EmbeddingFor(tx, of)
	if set.Model == "" {
		return Embedding{}, false
	}
	_, left, all := r.shelf(of, false).c.Unembedded(set.Name(), 0)
	out := Embedding{Model: set.Name(), Agent: string(set.Agent), Done: all - left, Of: all}
	w := r.embed.of(of, set.Name())
	r.embed.mu.Lock()
	defer r.embed.mu.Unlock()
	out.Hopeless, out.Problem = len(w.hopeless), w.problem
	return out, true
}

// embedAll has what is remembered embedded until ctx ends: one call at a time, paid each,
// so that a change of model takes its time and not the node.
func (r *Recall) embedAll(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.embed.wake:
		case <-tick.C:
		}
		for more := true; more && ctx.Err() == nil; {
			more = false
			for _, sh := range r.shelves() {
				again, err := r.embedSome(ctx, sh)
				more = more || again
				if err != nil && ctx.Err() == nil {
					r.log.Debug("memories can not be embedded now", "company", sh.company, "error", err)
				}
			}
		}
	}
}

func (r *Recall) shelves() (out []*shelf) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sh := range r.held {
		out = append(out, sh)
	}
	slices.SortFunc(out, func(a, b *shelf) int { return cmp.Compare(a.company, b.company) })
	return out
}

// A text is what is embedded of a record.
type text struct {
	id     string
	digest []byte
	cut    string
}

// embedSome embeds one batch of a company's records and reports whether there may be more.
func (r *Recall) embedSome(ctx context.Context, sh *shelf) (more bool, err error) {
	var set company.Embedding
	mine := false
	err = r.cfg.View(func(tx *ledger.Tx) error {
		set = company.EmbeddingFor(tx, sh.company)
		mine = r.cfg.Embedder.Mine(tx, sh.company, set.Model)
		return nil
	})
	if err != nil || !mine || !sh.progress().Ready {
		return false, err
	}
	w := r.embed.of(sh.company, set.Name())
	if time.Now().Before(w.until) {
		return false, nil
	}
	texts, err := r.pending(sh, w, set.Name())
	if err != nil || len(texts) == 0 {
		return false, err
	}
	if set.Model == "" {
		return r.tell(ctx, sh, w, company.Embed{Vectors: withoutVectors(texts)})
	}
	if set.Agent == "" {
		return false, r.failed(w, errors.New("no agent can pay for it: name one, or hire one"))
	}
	calling, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	got, err := r.vectors(calling, Payer{sh.company, string(set.Agent)}, set.Model, set.Version, cuts(texts))
	switch {
	case errors.Is(err, ErrTexts):
		return r.shorten(calling, sh, w, set, texts, err)
	case err != nil:
		return false, r.failed(w, err)
	}
	return r.store(ctx, sh, w, set, texts, got)
}

func cuts(texts []text) (out []string) {
	for _, t := range texts {
		out = append(out, t.cut)
	}
	return out
}

func withoutVectors(texts []text) (out []company.Embedded) {
	for _, t := range texts {
		out = append(out, company.Embedded{ID: t.id, Text: t.digest})
	}
	return out
}

// pending returns the texts of the next batch.
func (r *Recall) pending(sh *shelf, w *work, model string) (out []text, err error) {
	ids, _, _ := sh.c.Unembedded(model, batchTexts+maxHopeless)
	size := 0
	err = r.cfg.View(func(tx *ledger.Tx) error {
		for _, id := range ids {
			row, ok := company.Of(tx, sh.company, id.String())
			digest := company.TextDigest(row.Text)
			if !ok || len(out) == batchTexts || w.hopeless[id] == string(digest) {
				continue
			}
			t := text{row.ID, digest, beginning(row.Text, w.most)}
			if size += len(t.cut); size > batchBytes && len(out) > 0 {
				break
			}
			out = append(out, t)
		}
		return nil
	})
	return out, err
}

// beginning is at most so many bytes of a text.
func beginning(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most]
}

// shorten embeds the texts of a batch one by one, cut shorter and shorter until the model
// takes them.
func (r *Recall) shorten(ctx context.Context, sh *shelf, w *work, set company.Embedding, texts []text,
	because error) (more bool, err error) {
	var done []text
	var got [][]float32
	for _, t := range texts {
		for {
			one, err := r.vectors(ctx, Payer{sh.company, string(set.Agent)}, set.Model, set.Version, []string{t.cut})
			if err == nil {
				done, got = append(done, t), append(got, one[0])
				break
			}
			if !errors.Is(err, ErrTexts) {
				return false, r.failed(w, err)
			}
			if len(t.cut) <= leastText {
				r.giveUp(w, t)
				because = err
				break
			}
			// What one text was too long for is too long for the next ones, too.
			t.cut = beginning(t.cut, max(leastText, len(t.cut)/2))
			w.most = max(leastText, min(w.most, len(t.cut)))
		}
	}
	if len(done) == 0 {
		return false, r.failed(w, because)
	}
	return r.store(ctx, sh, w, set, done, got)
}

func (r *Recall) giveUp(w *work, t text) {
	r.embed.mu.Lock()
	defer r.embed.mu.Unlock()
	if id, ok := memory.ParseID(t.id); ok && len(w.hopeless) < maxHopeless {
		w.hopeless[id] = string(t.digest)
	}
}

// store has the vectors of texts stored, in commands that are small enough.
func (r *Recall) store(ctx context.Context, sh *shelf, w *work, set company.Embedding, texts []text,
	got [][]float32) (more bool, err error) {
	p := company.Embed{Model: set.Name()}
	size := 0
	for n, t := range texts {
		v, err := memory.Pack(got[n])
		if err != nil {
			r.giveUp(w, t)
			continue
		}
		if size += len(v); size > batchVectors && len(p.Vectors) > 0 {
			break // the rest is in the cache
		}
		p.Vectors = append(p.Vectors, company.Embedded{ID: t.id, Text: t.digest, Vector: v})
	}
	if len(p.Vectors) == 0 {
		return false, r.failed(w, errors.New("the model answered what are no vectors"))
	}
	return r.tell(ctx, sh, w, p)
}

// tell submits vectors, and takes in what that changed.
func (r *Recall) tell(ctx context.Context, sh *shelf, w *work, p company.Embed) (more bool, err error) {
	err = r.cfg.Embedder.Submit(ctx, company.KindEmbed, sh.company, p)
	if no, ok := errors.AsType[*ledger.Refusal](err); ok && no.Code == ledger.Conflict {
		w.until = time.Now().Add(retryFirst) // another node was faster, or the texts changed
		return false, nil
	}
	if err != nil {
		return false, r.failed(w, err)
	}
	sh.mu.Lock()
	err = r.cfg.View(func(tx *ledger.Tx) error { sh.take(tx, inline); return nil })
	sh.mu.Unlock()
	r.mark(sh.company)
	r.embed.mu.Lock()
	w.problem, w.wait = "", 0
	r.embed.mu.Unlock()
	return err == nil, err
}

// failed notes why a company can not be embedded now, and for how long it is left alone.
func (r *Recall) failed(w *work, err error) error {
	r.embed.mu.Lock()
	defer r.embed.mu.Unlock()
	w.problem = err.Error()
	if r := []rune(w.problem); len(r) > 300 {
		w.problem = string(r[:300]) + "…"
	}
	w.wait = min(max(2*w.wait, retryFirst), retryMost)
	w.until = time.Now().Add(w.wait)
	return fmt.Errorf("embed memories: %w", err)
}
