// Package memory serves what companies remember.
package memory

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
	"github.com/selvage-mesh/selvage/recall"
)

const defaultLimit = 10

// Routes are the rows of memories.
func Routes() []api.Route {
	const tag, at = "memory", "/api/v1/memory"
	whose := []api.Param{{Name: "companyId", Doc: "whose, where the body does not say it; an agent's own unless given"}}
	return []api.Route{
		{Method: "POST", Path: at, Tag: tag, Summary: "Remember a text", Query: whose, In: addBody{}, Out: shape{},
			Status: 201, Handle: add},
		{Method: "GET", Path: at, Tag: tag, Summary: "List what a company remembers, the newest first", Query: listParams,
			Out: listing{}, Handle: list},
		{Method: "POST", Path: at + "/search", Tag: tag,
			Summary: "Find memories by words and by what they are near to, with the reasons", Query: whose, In: searchBody{},
			Out: answer{}, Handle: search},
		{Method: "GET", Path: at + "/stats", Tag: tag,
			Summary: "Count what a company remembers, and say how much of it this node's index has",
			Query:   whose, Out: stats{}, Handle: stat},
		{Method: "GET", Path: at + "/embedding", Tag: tag, Summary: "Say which model embeds what a company remembers",
			Query: whose, Out: embeddingShape{}, Who: api.Board, Handle: readEmbedding},
		{Method: "PUT", Path: at + "/embedding", Tag: tag,
			Summary: "Choose the model of the gateway that embeds what a company remembers, and who pays", Query: whose,
			In: embeddingBody{}, Out: embeddingShape{},
			Who: api.Board, Handle: configure},
		{Method: "GET", Path: "/api/instance/memory-embedding", Tag: tag,
			Summary: "Say which model embeds what companies without a choice of their own remember", Out: embeddingShape{},
			Who: api.Admin, Handle: readEmbedding},
		{Method: "PUT", Path: "/api/instance/memory-embedding", Tag: tag,
			Summary: "Choose the model that embeds what companies without a choice of their own remember",
			In:      meshEmbeddingBody{}, Out: embeddingShape{},
			Who: api.Admin, Handle: configureMesh},
		{Method: "GET", Path: at + "/{id}", Tag: tag, Summary: "Read a memory", Out: shape{}, Handle: read},
		{Method: "PATCH", Path: at + "/{id}", Tag: tag, Summary: "Change a memory", In: changeBody{}, Out: shape{},
			Handle: change},
		{Method: "DELETE", Path: at + "/{id}", Tag: tag,
			Summary: "Forget a memory: its text and vector leave the state of every node", Out: forgotten{}, Handle: forget},
	}
}

type (
	addBody struct {
		Company    ledger.CompanyID `json:"companyId,omitempty" format:"uuid" doc:"an agent's own unless given"`
		Text       string           `json:"text" minLength:"1" maxLength:"16384" maxBytes:"16384"`
		Kind       string           `json:"kind,omitempty" pattern:"^[a-z][a-z0-9_-]{0,31}$" doc:"a word, such as note, fact or lesson; note unless given"`
		Tags       []string         `json:"tags,omitempty" maxItems:"16" maxLength:"64"`
		Agent      string           `json:"agentId,omitempty" format:"uuid" doc:"whose it is; without one it is the company's"`
		Private    bool             `json:"private,omitempty" doc:"only that agent, and the board, read it"`
		Project    string           `json:"projectId,omitempty" format:"uuid"`
		Issue      string           `json:"issueId,omitempty" format:"uuid" doc:"where it came from"`
		Comment    string           `json:"commentId,omitempty" format:"uuid" doc:"of that issue"`
		Importance int64            `json:"importance,omitempty" minimum:"0" maximum:"1000"`
		ExpiresAt  string           `json:"expiresAt,omitempty" format:"date-time"`
		Links      []string         `json:"links,omitempty" maxItems:"16" doc:"IDs of other memories"`
		Replaces   []string         `json:"replaces,omitempty" maxItems:"32" doc:"IDs of memories whose place this one takes: they stay, and searches leave them out"`
		Model      string           `json:"model,omitempty" maxLength:"128" maxBytes:"128" doc:"of the vector"`
		Vector     json.RawMessage  `json:"vector,omitempty" types:"array" maxBytes:"65536" doc:"numbers, kept as 8 bits each; without one, nodes embed the text themselves"`
	}
	changeBody struct {
		Text       *string         `json:"text,omitempty" nullable:"false" minLength:"1" maxLength:"16384" maxBytes:"16384"`
		Kind       *string         `json:"kind,omitempty" nullable:"false" pattern:"^[a-z][a-z0-9_-]{0,31}$"`
		Tags       *[]string       `json:"tags,omitempty" nullable:"false" maxItems:"16" maxLength:"64"`
		Private    *bool           `json:"private,omitempty" nullable:"false"`
		Project    api.Opt[string] `json:"projectId" format:"uuid"`
		Importance *int64          `json:"importance,omitempty" nullable:"false" minimum:"0" maximum:"1000"`
		ExpiresAt  api.Opt[string] `json:"expiresAt" format:"date-time"`
		Links      *[]string       `json:"links,omitempty" nullable:"false" maxItems:"16"`
		Model      string          `json:"model,omitempty" maxLength:"128" maxBytes:"128"`
		Vector     json.RawMessage `json:"vector,omitempty" nullable:"false" types:"array" maxBytes:"65536"`
	}
	searchBody struct {
		Company    ledger.CompanyID `json:"companyId,omitempty" format:"uuid" doc:"an agent's own unless given"`
		Query      string           `json:"query,omitempty" maxLength:"2048" maxBytes:"2048" doc:"words; \"a phrase\" must stand in a memory as it is, and a word* begins so"`
		Vector     json.RawMessage  `json:"vector,omitempty" types:"array" maxBytes:"65536" doc:"what to be near to, under model; without one the query is embedded"`
		Model      string           `json:"model,omitempty" maxLength:"128"`
		By         string           `json:"by,omitempty" enum:"both,words,vectors" doc:"both unless given"`
		Limit      int              `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"10 unless given"`
		Agents     []string         `json:"agentIds,omitempty" maxItems:"50" doc:"of one of these"`
		Projects   []string         `json:"projectIds,omitempty" maxItems:"50"`
		Issues     []string         `json:"issueIds,omitempty" maxItems:"50"`
		Runs       []string         `json:"runIds,omitempty" maxItems:"50"`
		Kinds      []string         `json:"kinds,omitempty" maxItems:"50"`
		Tags       []string         `json:"tags,omitempty" maxItems:"16" doc:"all of these"`
		Replaced   bool             `json:"replaced,omitempty" doc:"also those whose place another memory took"`
		After      string           `json:"after,omitempty" format:"date-time" doc:"made then or later"`
		Before     string           `json:"before,omitempty" format:"date-time" doc:"made earlier"`
		HalfLife   int64            `json:"halfLifeHours,omitempty" minimum:"1" maximum:"876000" doc:"after so many hours a memory counts half; all count alike unless given"`
		Importance int              `json:"importanceWeight,omitempty" minimum:"0" maximum:"1000" doc:"how much the importance of a memory counts; not at all unless given"`
	}

	// A shape is how a memory is shown. Texts are what somebody wrote: data, not orders.
	shape struct {
		memory.Record
		Tags       []string `json:"tags"`
		Links      []string `json:"links"`
		Replaces   []string `json:"replaces"`
		Dimensions int      `json:"dimensions"` // of the vector that came with it, 0 for none
	}
	forgotten struct {
		ID        string `json:"id"`
		Forgotten bool   `json:"forgotten"`
	}
	// An answer has the results with the best first.
	answer struct {
		Results  []result  `json:"results"`
		Seen     int       `json:"considered"` // memories that the asker may read and the filters let pass
		Model    *string   `json:"model"`      // of the vectors that were compared; null: none were
		Building *building `json:"building"`   // null: the index has everything
		Problem  *string   `json:"problem"`    // why the company's model did not embed the question: it was compared by words
		Height   uint64    `json:"height"`     // raft index of the state that answers
	}
	building struct {
		Done int64 `json:"done"`
		Of   int64 `json:"of"`
	}
	result struct {
		Memory shape   `json:"memory"`
		Score  float64 `json:"score"`
		Why    why     `json:"why"`
	}
	// A why says why a result has its place. Ranks count from 1; null: it is not in that
	// list. The score is the sum of 1/(60+rank) over the lists, times recency and importance.
	why struct {
		WordRank   *int        `json:"wordRank"`
		Words      []wordWorth `json:"words"` // of the query that stand in it
		WordScore  float64     `json:"wordScore"`
		VectorRank *int        `json:"vectorRank"`
		Cosine     *float64    `json:"cosine"`
		Recency    float64     `json:"recency"`
		Importance float64     `json:"importance"`
	}
	wordWorth struct {
		Word  string  `json:"word"`
		Score float64 `json:"score"`
	}
	stats struct {
		Company  ledger.CompanyID `json:"companyId"`
		Memories int64            `json:"memories"`
		Bytes    int64            `json:"bytes"`
		Most     int64            `json:"maxMemories"`
		MostSize int64            `json:"maxBytes"`
		Indexed  int              `json:"indexed"` // on this node
		Words    int              `json:"words"`   // different ones
		Building *building        `json:"building"`
		Models   []modelStats     `json:"models"`
		Embedded *embedded        `json:"embedding"` // by the company's model; null: it has none
	}
	// An embedded says how far the vectors of the company's model are.
	embedded struct {
		Model    string  `json:"model"` // with its version
		Agent    *string `json:"agentId"`
		Done     int     `json:"done"`
		Of       int     `json:"of"`
		Hopeless int     `json:"refused"` // texts that the model did not take
		Problem  *string `json:"problem"` // why this node can not embed now
	}
	modelStats struct {
		Model      string `json:"model"`
		Dimensions int    `json:"dimensions"`
		Vectors    int    `json:"vectors"`
		Linked     int    `json:"linked"` // in the graph; fewer vectors than 20,000 need none
		Bytes      int    `json:"bytes"`  // in this node's memory
	}
)

var errNone = api.NotFound("Memory record not found")

// companyOf is the company that a body or the query names, an agent's own where neither does.
func companyOf(rc *api.Request, named ledger.CompanyID) (ledger.CompanyID, error) {
	of := ledger.CompanyID(strings.ToLower(string(cmp.Or(named, ledger.CompanyID(rc.Query("companyId"))))))
	if rc.IsAgent() {
		if of != "" && of != rc.Company {
			return "", api.NotFound("Company not found")
		}
		return rc.Company, nil
	}
	if of == "" {
		return "", api.Invalid("companyId: required")
	}
	return of, rc.View(func(tx *ledger.Tx) error {
		if !api.Seen(tx, rc, of) {
			return api.NotFound("Company not found")
		}
		return nil
	})
}

// reader is the agent that asks, "" for the board.
func reader(rc *api.Request) string {
	if rc.IsAgent() {
		return rc.Actor.ID
	}
	return ""
}

// find returns a memory, if whoever asks may read it.
func find(tx *ledger.Tx, rc *api.Request, id string) (memory.Record, error) {
	r, ok := memory.ByID(tx, id)
	if !ok || !api.Seen(tx, rc, r.Company) || !r.ReadableBy(reader(rc)) || r.Expired(core.TimeOf(rc.Now())) {
		return r, errNone
	}
	return r, nil
}

func shapeOf(r memory.Record) shape {
	return shape{Record: r, Tags: append([]string{}, r.Tags...), Links: append([]string{}, r.Links...),
		Replaces: append([]string{}, r.Replaces...), Dimensions: r.Vector.Dims()}
}

func show(rc *api.Request, id string) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (shape, error) {
		r, err := find(tx, rc, id)
		return shapeOf(r), err
	})
}

func lower(ids []string) (out []string) {
	for _, id := range ids {
		out = append(out, strings.ToLower(id))
	}
	return out
}

// timeOf reads a time that the body's check took.
func timeOf(text string) core.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return core.TimeOf(t)
}

// vectorOf reads a vector, "" for none.
func vectorOf(raw json.RawMessage) ([]float32, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var numbers []json.Number
	if err := json.Unmarshal(raw, &numbers); err != nil {
		return nil, api.Invalid("vector: is not a list of numbers")
	}
	out := make([]float32, 0, len(numbers))
	for _, n := range numbers {
		f, err := strconv.ParseFloat(string(n), 32)
		if err != nil || math.IsInf(f, 0) {
			return nil, api.Invalid("%s", index.ErrNotFinite.Error())
		}
		out = append(out, float32(f))
	}
	return out, nil
}

func packed(raw json.RawMessage) (index.Vector, error) {
	x, err := vectorOf(raw)
	if err != nil || x == nil {
		return nil, err
	}
	v, err := index.Pack(x)
	if err != nil {
		return nil, api.Invalid("%s", err.Error())
	}
	return v, nil
}

func add(rc *api.Request) (api.Response, error) {
	in, err := api.Body[addBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, err := companyOf(rc, in.Company)
	if err != nil {
		return api.Response{}, err
	}
	if err := memory.CheckText("text", in.Text); err != nil {
		return api.Response{}, err
	}
	v, err := packed(in.Vector)
	if err != nil {
		return api.Response{}, err
	}
	p := memory.Save{ID: api.NewID(), Text: &in.Text, Tags: &in.Tags, Agent: strings.ToLower(in.Agent),
		Private: &in.Private, Issue: strings.ToLower(in.Issue),
		Comment: strings.ToLower(in.Comment), Importance: &in.Importance, Links: new(lower(in.Links)),
		Replaces: lower(in.Replaces), Model: in.Model, Vector: v}
	if in.Kind != "" {
		p.Kind = &in.Kind
	}
	if in.Project != "" {
		p.Project = new(strings.ToLower(in.Project))
	}
	if in.ExpiresAt != "" {
		p.ExpiresAt = new(timeOf(in.ExpiresAt))
	}
	saved, err := api.Do[memory.Saved](rc, memory.KindAdd, of, p)
	if err != nil {
		return api.Response{}, err
	}
	return show(rc, saved.ID)
}

func read(rc *api.Request) (api.Response, error) { return show(rc, api.PathID(rc, "id")) }

// located returns the memory that a command is about.
func located(rc *api.Request) (r memory.Record, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		r, err = find(tx, rc, api.PathID(rc, "id"))
		return err
	})
	return r, err
}

func change(rc *api.Request) (api.Response, error) {
	in, err := api.Body[changeBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	r, err := located(rc)
	if err != nil {
		return api.Response{}, err
	}
	if in.Text != nil {
		if err := memory.CheckText("text", *in.Text); err != nil {
			return api.Response{}, err
		}
	}
	v, err := packed(in.Vector)
	if err != nil {
		return api.Response{}, err
	}
	p := memory.Save{ID: r.ID, Text: in.Text, Kind: in.Kind, Tags: in.Tags, Private: in.Private, Importance: in.Importance,
		Links: in.Links, Model: in.Model, Vector: v}
	if in.Links != nil {
		p.Links = new(lower(*in.Links))
	}
	if in.Project.Set {
		p.Project = new(strings.ToLower(in.Project.Or("")))
	}
	if in.ExpiresAt.Set {
		p.ExpiresAt = new(core.Time(0))
		if at := in.ExpiresAt.Or(""); at != "" {
			p.ExpiresAt = new(timeOf(at))
		}
	}
	if _, err := api.Do[memory.Saved](rc, memory.KindUpdate, r.Company, p); err != nil {
		return api.Response{}, err
	}
	return show(rc, r.ID)
}

func forget(rc *api.Request) (api.Response, error) {
	r, err := located(rc)
	if err != nil {
		return api.Response{}, err
	}
	_, err = rc.Submit(memory.KindForget, r.Company, memory.Forget{IDs: []string{r.ID}})
	return api.OK(forgotten{r.ID, true}), err
}

func search(rc *api.Request) (api.Response, error) {
	in, err := api.Body[searchBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if rc.Server.Cfg.Recall == nil {
		return api.Response{}, api.Unavailable("This node keeps no index of memories; ask another node")
	}
	of, err := companyOf(rc, in.Company)
	if err != nil {
		return api.Response{}, err
	}
	s, err := in.search(rc)
	if err != nil {
		return api.Response{}, err
	}
	problem := in.embed(rc, of, &s)
	var out answer
	err = rc.View(func(tx *ledger.Tx) error {
		out, err = found(tx, rc, of, s)
		if errors.Is(err, index.ErrOtherDims) && in.Vector == nil { // the model is not what it was
			problem, s.Model, s.Vector = new(err.Error()), "", nil
			out, err = found(tx, rc, of, s)
		}
		return err
	})
	for _, bad := range []error{index.ErrNoQuestion, index.ErrModel, index.ErrNotFinite, index.ErrZero,
		index.ErrOtherDims} {
		if errors.Is(err, bad) {
			err = api.Invalid("%s", bad.Error())
		}
	}
	out.Height, out.Problem = rc.Index, problem
	return api.OK(out), err
}

// embed has the model of a company embed the question, where it has one and the question
// brings no vector. Where that fails the question is compared by its words, and the reason
// is told.
func (in searchBody) embed(rc *api.Request, of ledger.CompanyID, s *index.Search) (problem *string) {
	if s.Vector != nil || s.Model != "" || s.By == index.ByWords {
		return nil
	}
	model, x, err := rc.Server.Cfg.Recall.Question(rc.Context(), of, reader(rc), in.Query)
	if err != nil {
		return new(err.Error())
	}
	s.Model, s.Vector = model, x
	return nil
}

// search is what a body asks for.
func (in searchBody) search(rc *api.Request) (index.Search, error) {
	x, err := vectorOf(in.Vector)
	if err != nil {
		return index.Search{}, err
	}
	s := index.Search{Query: in.Query, Vector: x, Model: in.Model, Limit: in.Limit, Now: rc.Now().UnixMilli(),
		HalfLife: in.HalfLife * 3_600_000, Importance: in.Importance,
		By: map[string]index.By{"words": index.ByWords, "vectors": index.ByVectors}[in.By],
		Filter: index.Filter{Reader: reader(rc), All: !rc.IsAgent(), Agents: lower(in.Agents), Projects: lower(in.Projects),
			Issues: lower(in.Issues), Runs: lower(in.Runs),
			Kinds: in.Kinds, Tags: in.Tags, Replaced: in.Replaced}}
	if s.Limit == 0 {
		s.Limit = defaultLimit
	}
	if in.After != "" {
		s.Filter.After = int64(timeOf(in.After))
	}
	if in.Before != "" {
		s.Filter.Before = int64(timeOf(in.Before))
	}
	return s, nil
}

// found searches, and reads each result from the state: what was forgotten meanwhile is
// not shown.
func found(tx *ledger.Tx, rc *api.Request, of ledger.CompanyID, s index.Search) (answer, error) {
	out := answer{Results: []result{}}
	if _, ok := entity.CompanyOf(tx, of); !ok {
		return out, api.NotFound("Company not found")
	}
	f, far, err := rc.Server.Cfg.Recall.Search(tx, of, s)
	if err != nil {
		return out, err
	}
	for _, hit := range f.Results {
		if r, err := find(tx, rc, hit.ID.String()); err == nil && r.Company == of {
			out.Results = append(out.Results, result{shapeOf(r), float64(hit.Score) / 1e9, whyOf(hit)})
		}
	}
	out.Seen, out.Building = f.Seen, buildingOf(far)
	if f.Model != "" {
		out.Model = &f.Model
	}
	return out, nil
}

func whyOf(hit index.Result) why {
	w := why{Words: []wordWorth{}, WordScore: inBits(hit.WordsSum), Recency: float64(hit.Recency) / 1000,
		Importance: float64(hit.Importance) / 1000}
	for _, word := range hit.Words {
		w.Words = append(w.Words, wordWorth{word.Word, inBits(word.Worth)})
	}
	if hit.WordRank > 0 {
		w.WordRank = &hit.WordRank
	}
	if hit.VectorRank > 0 {
		w.VectorRank, w.Cosine = &hit.VectorRank, new(math.Round(float64(hit.Cosine)*1e6)/1e6)
	}
	return w
}

// inBits is a score of words, to four digits.
func inBits(score int64) float64 { return math.Round(float64(score)/65536*1e4) / 1e4 }

func stat(rc *api.Request) (api.Response, error) {
	of, err := companyOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (stats, error) {
		n := memory.CountOf(tx, of)
		out := stats{Company: of, Memories: n.Records, Bytes: n.Bytes, Most: memory.MaxRecords, MostSize: memory.MaxBytes,
			Models: []modelStats{}}
		if rc.IsAgent() {
			out.Memories, out.Bytes = readable(tx, of, reader(rc))
		}
		if rc.Server.Cfg.Recall == nil || rc.IsAgent() {
			return out, nil
		}
		st, far := rc.Server.Cfg.Recall.Stat(of)
		out.Indexed, out.Words, out.Building = st.Records, st.Forms, buildingOf(far)
		if n.Records == 0 {
			out.Building = nil
		}
		for _, m := range st.Models {
			out.Models = append(out.Models, modelStats{m.Model, m.Dims, m.Vectors, m.Linked, m.VectorBytes + m.Beside})
		}
		if e, ok := rc.Server.Cfg.Recall.Embedding(tx, of); ok {
			out.Embedded = &embedded{e.Model, orNull(e.Agent), e.Done, e.Of, e.Hopeless, orNull(e.Problem)}
		}
		return out, nil
	})
}

// readable counts what an agent may read. The count of all would tell it about others'.
func readable(tx *ledger.Tx, of ledger.CompanyID, agent string) (count, size int64) {
	memory.Each(tx, of, func(r memory.Record) bool {
		if r.ReadableBy(agent) {
			count, size = count+1, size+int64(len(r.Text)+len(r.Vector))
		}
		return true
	})
	return count, size
}

func buildingOf(p recall.Progress) *building {
	if p.Ready {
		return nil
	}
	return &building{p.Done, p.Of}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
