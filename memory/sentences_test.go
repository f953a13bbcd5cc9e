package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The benchmarks of this file measure with real sentences, which scripts/benchdata puts
// into the folder SELVAGE_BENCH; without it they measure nothing.

// asked is how long questions are asked for one figure.
const asked = 2 * time.Second

func benchFolder(b *testing.B) string {
	b.Helper()
	dir := os.Getenv("SELVAGE_BENCH")
	if dir == "" {
		b.Skip("SELVAGE_BENCH names no folder; see scripts/benchdata")
	}
	return dir
}

// floats reads rows of 384 numbers.
func floats(b *testing.B, name string) (rows [][]float32) {
	b.Helper()
	raw, err := os.ReadFile(filepath.Join(benchFolder(b), name))
	if err != nil {
		b.Fatal(err)
	}
	for ; len(raw) >= 4*LexicalDims; raw = raw[4*LexicalDims:] {
		row := make([]float32, LexicalDims)
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		rows = append(rows, row)
	}
	return rows
}

// truth reads, for each question of a set, the ten nearest by an exact search with floats.
func truth(b *testing.B, set string) (rows [][]uint32) {
	b.Helper()
	raw, err := os.ReadFile(filepath.Join(benchFolder(b), set+"-truth.u32"))
	if err != nil {
		b.Fatal(err)
	}
	for ; len(raw) >= 40; raw = raw[40:] {
		row := make([]uint32, 10)
		for i := range row {
			row[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
		rows = append(rows, row)
	}
	return rows
}

// hits is the share of the ten nearest that are among what was found.
func hits(b *testing.B, s Index, questions [][]float32, near [][]uint32) float64 {
	b.Helper()
	hit := 0
	for n, q := range questions {
		got, err := s.Search(q, 10, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, h := range got {
			if slices.Contains(near[n], uint32(numberOf(h.ID))) {
				hit++
			}
		}
	}
	return float64(hit) / float64(10*len(questions))
}

func numberOf(id ID) uint64 { return binary.BigEndian.Uint64(id[8:]) }

func packAll(b *testing.B, all [][]float32) []Vector {
	out := make([]Vector, len(all))
	for n, x := range all {
		out[n] = packed(b, x)
	}
	return out
}

// heapNow is what the heap has in use.
func heapNow() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// lines reads a text file.
func lines(b *testing.B, name string) []string {
	b.Helper()
	raw, err := os.ReadFile(filepath.Join(benchFolder(b), name))
	if err != nil {
		b.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

// BenchmarkSentencesEmbed embeds sentences and questions by their words, and writes the
// vectors for those that read them.
func BenchmarkSentencesEmbed(b *testing.B) {
	for b.Loop() {
		for _, name := range []string{"sentences", "questions"} {
			texts, began := lines(b, name+".txt"), time.Now()
			var out []byte
			for _, text := range texts {
				v, ok := Embed(text)
				if !ok {
					b.Fatalf("%q has no word", text)
				}
				for _, f := range v.Unpack() {
					out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
				}
			}
			b.ReportMetric(float64(len(texts))/time.Since(began).Seconds(), name+"/s")
			to := map[string]string{"sentences": "lexical-vectors.f32", "questions": "lexical-questions.f32"}[name]
			if err := os.WriteFile(filepath.Join(benchFolder(b), to), out, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// sets are the kinds of vectors that are measured.
var sets = []string{"model", "lexical"}

func eachSet(b *testing.B, f func(b *testing.B, set string)) {
	for _, set := range sets {
		b.Run(set, func(b *testing.B) { f(b, set) })
	}
}

// BenchmarkSentencesBuild builds the graph over all sentences, and saves it.
func BenchmarkSentencesBuild(b *testing.B) {
	dir := benchFolder(b)
	eachSet(b, func(b *testing.B, set string) {
		all := packAll(b, floats(b, set+"-vectors.f32"))
		for b.Loop() {
			before := heapNow()
			s := newSpace(b, LexicalDims, benchExact)
			began := time.Now()
			for n, v := range all {
				if err := s.Add(idOf(n), v); err != nil {
					b.Fatal(err)
				}
			}
			for s.Link(500) > 0 {
			}
			took := time.Since(began)
			vectors, _ := s.Bytes()
			b.ReportMetric(float64(len(all)), "vectors")
			b.ReportMetric(float64(len(all))/took.Seconds(), "vectors/s")
			b.ReportMetric((heapNow()-before-float64(vectors))/1e6, "MB-beside")
			b.ReportMetric(float64(vectors)/1e6, "MB-vectors")
			began = time.Now()
			size := saved(b, s, filepath.Join(dir, set+"-ours.graph"))
			b.ReportMetric(time.Since(began).Seconds(), "s-save")
			b.ReportMetric(size/1e6, "MB-file")
		}
	})
}

// benchExact has the graph used, however few sentences there are.
const benchExact = 1000

// saved writes a graph and returns how many bytes it has.
func saved(b *testing.B, s *Space, path string) float64 {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(s.Save(f), f.Close()); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size())
}

// askFor asks questions in turn for a while. Beside other work, what a query takes of a
// processor says more than queries a second do.
func askFor(b *testing.B, s Index, questions [][]float32) (perSecond float64) {
	began, busy, n := time.Now(), processorTime(b), 0
	for ; time.Since(began) < asked; n++ {
		if _, err := s.Search(questions[n%len(questions)], 10, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b)-busy).Microseconds())/float64(n), "µs-CPU/query")
	return float64(n) / time.Since(began).Seconds()
}

// processorTime is what this process used of all processors.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkSentencesSearch asks the graph that BenchmarkSentencesBuild saved.
func BenchmarkSentencesSearch(b *testing.B) {
	dir := benchFolder(b)
	eachSet(b, func(b *testing.B, set string) {
		questions, near := floats(b, set+"-questions.f32"), truth(b, set)
		s := newSpace(b, LexicalDims, benchExact)
		for n, v := range packAll(b, floats(b, set+"-vectors.f32")) {
			if err := s.Add(idOf(n), v); err != nil {
				b.Fatal(err)
			}
		}
		f, err := os.Open(filepath.Join(dir, set+"-ours.graph"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		began := time.Now()
		if err := s.Load(f); err != nil {
			b.Fatal(err)
		}
		loaded := time.Since(began).Seconds()
		if count, linked := s.Len(); count != linked {
			b.Fatalf("%d of %d vectors are in the loaded graph", linked, count)
		}
		for b.Loop() {
			b.ReportMetric(loaded, "s-load")
			b.ReportMetric(askFor(b, s, questions), "queries/s")
			b.ReportMetric(hits(b, s, questions, near), "recall")
		}
	})
}

// BenchmarkSentencesExact compares each question with every sentence.
func BenchmarkSentencesExact(b *testing.B) {
	eachSet(b, func(b *testing.B, set string) {
		all, questions, near := packAll(b, floats(b, set+"-vectors.f32")), floats(b, set+"-questions.f32"), truth(b, set)
		s := newSpace(b, LexicalDims, len(all))
		for n, v := range all {
			if err := s.Add(idOf(n), v); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			b.ReportMetric(askFor(b, s, questions), "queries/s")
			b.ReportMetric(hits(b, s, questions[:100], near), "recall")
		}
	})
}

// BenchmarkSentencesLibrary fills github.com/coder/hnsw with the same vectors, and asks it
// the same.
func BenchmarkSentencesLibrary(b *testing.B) {
	eachSet(b, func(b *testing.B, set string) {
		all, questions, near := packAll(b, floats(b, set+"-vectors.f32")), floats(b, set+"-questions.f32"), truth(b, set)
		for b.Loop() {
			s := newLibrary()
			began := time.Now()
			for n, v := range all {
				if err := s.Add(idOf(n), v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(all))/time.Since(began).Seconds(), "vectors/s")
			b.ReportMetric(askFor(b, s, questions), "queries/s")
			b.ReportMetric(hits(b, s, questions, near), "recall")
		}
	})
}

// A judged set has texts, questions and how well each text answers each question.
type judged struct {
	texts     []string
	questions []string
	gain      func(question, text int) float64
	skip      func(question, text int) bool
	// The vectors of texts and questions by a sentence model.
	textVectors, questionVectors [][]float32
}

const sentenceModel = "multilingual-e5-small"

func (j judged) collection(b *testing.B) *Collection {
	c := NewCollection()
	for n, text := range j.texts {
		words, _ := Embed(text)
		if err := c.Put(Doc{ID: idOf(n), Text: text, Model: sentenceModel, Vector: packed(b, j.textVectors[n]),
			Words: words}); err != nil {
			b.Fatal(err)
		}
	}
	for c.Link(500) > 0 {
	}
	return c
}

// ndcg is the mean of nDCG@10 over the questions.
func (j judged) ndcg(b *testing.B, c *Collection, search func(question int) Search) float64 {
	sum := 0.0
	for q := range j.questions {
		s := search(q)
		s.Limit, s.Filter.All = 11, true
		found, err := c.Search(s)
		if err != nil {
			b.Fatal(err)
		}
		got, at := 0.0, 0
		for _, r := range found.Results {
			n := int(numberOf(r.ID))
			if !j.skip(q, n) && at < 10 {
				got += j.gain(q, n) / math.Log2(float64(at+2))
				at++
			}
		}
		sum += got / j.ideal(q)
	}
	return sum / float64(len(j.questions))
}

func (j judged) ideal(q int) (sum float64) {
	var gains []float64
	for n := range j.texts {
		if g := j.gain(q, n); g > 0 && !j.skip(q, n) {
			gains = append(gains, g)
		}
	}
	slices.Sort(gains)
	slices.Reverse(gains)
	for at, g := range gains[:min(10, len(gains))] {
		sum += g / math.Log2(float64(at+2))
	}
	return sum
}

// lee is fifty news texts that people judged for likeness (Lee, Pincombe and Welsh, 2005):
// the first sentence of one asks for the others. From 1 of 5, which gains nothing, each
// step doubles what is gained and adds one.
func lee(b *testing.B) judged {
	dir := filepath.Join(benchFolder(b), "lee")
	raw, err := os.ReadFile(filepath.Join(dir, "lee.cor"))
	if err != nil {
		b.Fatal(err)
	}
	ratings, err := os.ReadFile(filepath.Join(dir, "similarities0-1.txt"))
	if err != nil {
		b.Fatal(err)
	}
	j := judged{textVectors: floats(b, "lee.f32"), questionVectors: floats(b, "leeask.f32")}
	for line := range bytes.Lines(raw) {
		if text := strings.TrimSpace(string(line)); text != "" {
			first, _, _ := strings.Cut(text, ". ")
			j.texts, j.questions = append(j.texts, text), append(j.questions, first)
		}
	}
	var like [][]float64
	for line := range strings.Lines(string(ratings)) {
		var row []float64
		for _, f := range strings.Fields(line) {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				b.Fatal(err)
			}
			row = append(row, v)
		}
		if len(row) > 0 {
			like = append(like, row)
		}
	}
	j.gain = func(q, n int) float64 { return math.Exp2(5*max(like[q][n], like[n][q])-1) - 1 }
	j.skip = func(q, n int) bool { return q == n }
	return j
}

// wordnet is the definitions of WordNet: words ask for the one that defines them.
func wordnet(b *testing.B) judged {
	j := judged{textVectors: floats(b, "model-vectors.f32"), questionVectors: floats(b, "words.f32"),
		texts: lines(b, "sentences.txt")}
	j.texts = j.texts[:len(j.textVectors)]
	var right []int
	for _, line := range lines(b, "words.txt") {
		number, text, _ := strings.Cut(line, "\t")
		n, err := strconv.Atoi(number)
		if err != nil {
			b.Fatal(err)
		}
		right, j.questions = append(right, n), append(j.questions, text)
	}
	j.gain = func(q, n int) float64 {
		if right[q] == n {
			return 1
		}
		return 0
	}
	j.skip = func(int, int) bool { return false }
	return j
}

// BenchmarkQuality ranks judged texts by each source of vectors, alone and with words.
func BenchmarkQuality(b *testing.B) {
	for name, set := range map[string]func(*testing.B) judged{"lee": lee, "wordnet": wordnet} {
		b.Run(name, func(b *testing.B) {
			j := set(b)
			c := j.collection(b)
			by := func(by By, model bool) func(int) Search {
				return func(q int) Search {
					s := Search{Query: j.questions[q], By: by}
					if model {
						s.Model, s.Vector = sentenceModel, j.questionVectors[q]
					}
					return s
				}
			}
			for b.Loop() {
				b.ReportMetric(j.ndcg(b, c, by(ByWords, false)), "words")
				b.ReportMetric(j.ndcg(b, c, by(ByVectors, false)), "lexical")
				b.ReportMetric(j.ndcg(b, c, by(ByBoth, false)), "words+lexical")
				b.ReportMetric(j.ndcg(b, c, by(ByVectors, true)), "model")
				b.ReportMetric(j.ndcg(b, c, by(ByBoth, true)), "words+model")
			}
		})
	}
}

// BenchmarkHybrid searches a collection of all sentences by words and vectors.
func BenchmarkHybrid(b *testing.B) {
	texts, questions := lines(b, "sentences.txt"), lines(b, "questions.txt")
	c := NewCollection()
	for n, text := range texts {
		words, _ := Embed(text)
		if err := c.Put(Doc{ID: idOf(n), Text: text, Tags: []string{"t" + strconv.Itoa(n%50)}, Words: words}); err != nil {
			b.Fatal(err)
		}
	}
	for c.Link(500) > 0 {
	}
	for b.Loop() {
		var took []time.Duration
		for _, q := range questions {
			began := time.Now()
			if _, err := c.Search(Search{Query: q, Limit: 10, Filter: Filter{All: true}}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		b.ReportMetric(float64(len(texts)), "records")
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
		b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "µs-p95")
	}
}
