package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

// What the agent keeps are texts under keys, in the memory of its host. Beside them
// it keeps what they mean, a vector each, as long as a model that embeds is to be
// had: it looks for what is near in meaning then, and for words besides. Without
// such a model it looks for words alone, and says so in its log.

const (
	// vectorKey begins the keys of vectors, doneKey those of what was worked on.
	vectorKey, doneKey = "vec.", "done."
	// maxDims bounds a vector, and maxEmbedded the texts that one call embeds;
	// maxEmbedCalls those calls for one question. What is left over has its turn when
	// something is looked for again.
	maxDims, maxEmbedded, maxEmbedCalls = 4096, 16, 4
	// maxEmbedText bounds what is embedded of a text, in bytes.
	maxEmbedText = 2000
	// packBytes bounds the vectors under one key, as the host bounds a text, and
	// maxPacks those keys: a third of the memory that an agent has.
	packBytes, maxPacks = 15 << 10, 20
	// maxDone bounds what is kept of earlier work; the oldest goes first. doneFreed
	// is how much goes at once where there is no room.
	maxDone, doneFreed = 100, 20
	// rankShift damps the ranks that are added up of the two ways to look.
	rankShift = 60
)

// A memory is one text that the agent keeps.
type memory struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Updated string `json:"updatedAt"`

	vector []int8
}

// A pack is the value of some vectors, by the sum of the key that each is of.
type pack struct {
	Model string          `json:"m"`
	Of    map[string]kept `json:"of"`

	stale bool // there were more, of texts that are gone
}

// A kept is a vector, and of which text.
type kept struct {
	Text  string `json:"t"` // sum of the key and the text
	Bytes []byte `json:"v"` // int8 each
}

// packedBytes is about what a vector takes in its pack.
func packedBytes(dims int) int { return (dims+2)/3*4 + 60 }

func (p pack) bytes() (n int) {
	for _, k := range p.Of {
		n += packedBytes(len(k.Bytes))
	}
	return n
}

func packKey(n int) string { return fmt.Sprintf("%s%02d", vectorKey, n) }

func sum(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%016x", h.Sum64())
}

// text is what a memory is embedded as.
func (m memory) text() string { return m.Key + ": " + m.Value }

// embedder is the model that embeds: the configured one, or the first that there is
// whose name says so; "" when there is none.
func (a *agent) embedder() string {
	if a.embeds != nil {
		return *a.embeds
	}
	name := a.env("AGENT_EMBED_MODEL")
	if name == "" {
		var list struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		_ = a.ask("model.list", nil, &list) // without a list there is none
		for _, m := range list.Data {
			if id := strings.ToLower(m.ID); name == "" && strings.Contains(id, "embed") && !strings.Contains(id, "*") {
				name = m.ID
			}
		}
		if name == "" {
			_ = wasmkitLog(a.ask, "info", "memory is looked through by words: there is no model that embeds")
		}
	}
	a.embeds = &name
	return name
}

// noVectors is the end of looking for meanings in this run.
func (a *agent) noVectors(err error) {
	_ = wasmkitLog(a.ask, "warn", "memory is looked through by words: "+err.Error())
	a.embeds = new(string)
}

// embed asks for the vectors of texts.
func (a *agent) embed(texts []string) ([][]int8, error) {
	var out struct {
		Data []struct {
			Index  int       `json:"index"`
			Vector []float32 `json:"embedding"`
		} `json:"data"`
	}
	for i, t := range texts {
		if len(t) > maxEmbedText {
			texts[i] = strings.ToValidUTF8(t[:maxEmbedText], "")
		}
	}
	if err := a.ask("model.embed", map[string]any{"model": a.embedder(), "input": texts}, &out); err != nil {
		return nil, err
	}
	vectors := make([][]int8, len(texts))
	for _, d := range out.Data {
		if d.Index >= 0 && d.Index < len(texts) {
			vectors[d.Index] = shrink(d.Vector)
		}
	}
	if slices.ContainsFunc(vectors, func(v []int8) bool { return v == nil }) {
		return nil, fmt.Errorf("the model %s gave no vectors that can be used", a.embedder())
	}
	return vectors, nil
}

// shrink makes a byte of each number, of 127 the largest; nil when that can not be.
func shrink(v []float32) []int8 {
	if len(v) == 0 || len(v) > maxDims {
		return nil
	}
	most := 0.0
	for _, f := range v {
		most = max(most, math.Abs(float64(f)))
	}
	if !(most > 0) || math.IsInf(most, 0) {
		return nil
	}
	out := make([]int8, len(v))
	for i, f := range v {
		out[i] = int8(math.Round(float64(f) / most * 127))
	}
	return out
}

// near is the cosine of two vectors, -1 when they can not be compared.
func near(a, b []int8) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return -1
	}
	var dot, aa, bb int64
	for i := range a {
		x, y := int64(a[i]), int64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return -1
	}
	return float64(dot) / math.Sqrt(float64(aa)*float64(bb))
}

// memories are all that the agent keeps, with their vectors where these are of the
// text as it is now and of this model, and the packs that these lie in,
// less what they hold of texts that are gone.
func (a *agent) memories(model string) (list []memory, packs []pack, err error) {
	var rows []memory
	if err := a.ask("memory.list", nil, &rows); err != nil {
		return nil, nil, err
	}
	packs = make([]pack, maxPacks)
	for _, r := range rows {
		if !strings.HasPrefix(r.Key, vectorKey) {
			list = append(list, r)
			continue
		}
		for n := range packs {
			// One that can not be read, or of another model, is written over.
			if p := (pack{}); r.Key == packKey(n) && json.Unmarshal([]byte(r.Value), &p) == nil && p.Model == model {
				packs[n] = p
			}
		}
	}
	for i, m := range list {
		for _, p := range packs {
			if k, ok := p.Of[sum(m.Key)]; ok && k.Text == sum(m.text()) && len(k.Bytes) <= maxDims {
				list[i].vector = make([]int8, len(k.Bytes))
				for n, x := range k.Bytes {
					list[i].vector[n] = int8(x)
				}
			}
		}
	}
	now := map[string]string{}
	for _, m := range list {
		now[sum(m.Key)] = sum(m.text())
	}
	for n, p := range packs {
		for at, k := range p.Of {
			if now[at] != k.Text {
				delete(p.Of, at)
				packs[n].stale = true
			}
		}
	}
	return list, packs, nil
}

// room is how many more vectors there is a place for.
func room(packs []pack, dims int) (n int) {
	for _, p := range packs {
		n += max(packBytes-p.bytes(), 0) / packedBytes(dims)
	}
	return n
}

// keep writes the vectors of some memories, as far as there is a place for them.
func (a *agent) keep(fresh []memory, packs []pack, model string) {
	for n := range packs {
		p := &packs[n]
		p.Model = model
		if p.Of == nil {
			p.Of = map[string]kept{}
		}
		changed := p.stale
		for len(fresh) > 0 && p.bytes()+packedBytes(len(fresh[0].vector)) <= packBytes {
			b := make([]byte, len(fresh[0].vector))
			for i, x := range fresh[0].vector {
				b[i] = byte(x)
			}
			p.Of[sum(fresh[0].Key)] = kept{sum(fresh[0].text()), b}
			fresh, changed = fresh[1:], true
		}
		if changed {
			// Where that is refused they are asked for again the next time.
			_ = a.ask("memory.put", map[string]string{"key": packKey(n), "value": compact(p)}, nil)
		}
	}
}

// byMeaning ranks what the agent keeps by how near it is to a question.
func (a *agent) byMeaning(q string) ([]memory, error) {
	model := a.embedder()
	if model == "" {
		return nil, nil
	}
	list, packs, err := a.memories(model)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	asked, err := a.embed([]string{q})
	if err != nil {
		return nil, err
	}
	question, fresh := asked[0], []memory{}
	left := min(room(packs, len(question)), maxEmbedCalls*maxEmbedded)
	for left > 0 {
		var at []int
		var texts []string
		for i := range list {
			if list[i].vector == nil && len(texts) < min(left, maxEmbedded) {
				at, texts = append(at, i), append(texts, list[i].text())
			}
		}
		if len(texts) == 0 {
			break
		}
		vectors, err := a.embed(texts)
		if err != nil {
			return nil, err
		}
		for n, i := range at {
			list[i].vector = vectors[n]
			fresh = append(fresh, list[i])
		}
		left -= len(texts)
	}
	if len(fresh) > 0 {
		a.keep(fresh, packs, model)
	}
	score := make(map[string]float64, len(list))
	for _, m := range list {
		score[m.Key] = near(question, m.vector)
	}
	list = slices.DeleteFunc(list, func(m memory) bool { return score[m.Key] <= 0 })
	slices.SortStableFunc(list, func(x, y memory) int { return cmp.Compare(score[y.Key], score[x.Key]) })
	return list, nil
}

// byWords is what the host finds by the words of a question.
func (a *agent) byWords(q string) (list []memory, err error) {
	err = a.ask("memory.search", map[string]any{"q": q, "limit": 2 * maxRecalled}, &list)
	return slices.DeleteFunc(list, func(m memory) bool { return strings.HasPrefix(m.Key, vectorKey) }), err
}

// recall looks for what the agent kept: by meaning and by words where it can, the
// ranks of both added up; else by words.
func (a *agent) recall(q string) (lines []string) {
	if len(q) > maxQuestion {
		q = strings.ToValidUTF8(q[:maxQuestion], "")
	}
	if strings.TrimSpace(q) == "" {
		return nil
	}
	words, err := a.byWords(q)
	if err != nil {
		return nil // it works without
	}
	meant, err := a.byMeaning(q)
	if err != nil {
		a.noVectors(err)
	}
	score, list := map[string]float64{}, []memory{}
	for _, found := range [][]memory{meant[:min(len(meant), 2*maxRecalled)], words} {
		for rank, m := range found {
			if score[m.Key] == 0 {
				list = append(list, m)
			}
			score[m.Key] += 1 / float64(rankShift+rank)
		}
	}
	slices.SortStableFunc(list, func(x, y memory) int { return cmp.Compare(score[y.Key], score[x.Key]) })
	for _, m := range list[:min(len(list), maxRecalled)] {
		lines = append(lines, m.Key+": "+m.Value)
	}
	return lines
}

// isFull reports whether a text was refused because there are too many.
func isFull(err error) bool {
	var no *wasmkit.Error
	return errors.As(err, &no) && strings.HasPrefix(no.Message, "422: An agent keeps at most")
}

// put keeps a text; where there is no room the vectors go, which can be made again,
// and after them the oldest of earlier work.
func (a *agent) put(key, value string) error {
	in := map[string]string{"key": key, "value": value}
	for _, free := range []func(memory) bool{
		func(m memory) bool { return strings.HasPrefix(m.Key, vectorKey) },
		func(m memory) bool { return strings.HasPrefix(m.Key, doneKey) && m.Key != key },
	} {
		err := a.ask("memory.put", in, nil)
		if err == nil || !isFull(err) {
			return err
		}
		if _, e := a.forget(free, doneFreed); e != nil {
			return e
		}
	}
	return a.ask("memory.put", in, nil)
}

// forget deletes the oldest of what it is asked to, at most so many, and returns
// how many there were.
func (a *agent) forget(which func(memory) bool, most int) (int, error) {
	var rows []memory
	if err := a.ask("memory.list", nil, &rows); err != nil {
		return 0, err
	}
	rows = slices.DeleteFunc(rows, func(m memory) bool { return !which(m) })
	slices.SortStableFunc(rows, func(x, y memory) int { return strings.Compare(x.Updated, y.Updated) })
	for _, m := range rows[:max(min(most, len(rows)), 0)] {
		if err := a.ask("memory.delete", map[string]string{"key": m.Key}, nil); err != nil && codeOf(err) != "NotFound" {
			return len(rows), err
		}
	}
	return len(rows), nil
}

// learn keeps what came of an issue, so that it is recalled for work that is like
// it; the oldest beyond maxDone goes.
func (a *agent) learn(i Issue, o Outcome) error {
	text := fmt.Sprintf("%s (%s, scored %.2f, %s): %s", cut(i.Title, 60), o.Profile.Type, o.Score, o.Status, cut(o.Result, 120))
	if o.Lesson != "" {
		text += "\nLesson: " + o.Lesson
	}
	key := doneKey + cmp.Or(i.Identifier, i.ID)
	if err := a.put(key, text); err != nil {
		return err
	}
	done := func(m memory) bool { return strings.HasPrefix(m.Key, doneKey) }
	n, err := a.forget(done, 0)
	if err == nil && n > maxDone {
		_, err = a.forget(done, n-maxDone)
	}
	return err
}
