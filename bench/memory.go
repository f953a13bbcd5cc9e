package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	recallHTTPPort = 23240
	recallMeshPort = 29590
	recallCompany  = "Sentences"
	// recallTries is how many memories are added and then looked for on every node.
	recallTries = 60
	// recallWait bounds how long nodes may take to index what was added.
	recallWait = 10 * time.Minute
	// recallGraphFrom is from how many vectors on a collection keeps a graph.
	recallGraphFrom = 20_000
	// restingSentences are remembered by the mesh whose idle cost is measured: a mind takes
	// some minutes to look at them.
	restingSentences = 3000
	// recallIdle is how long a mesh is watched that has nothing to do.
	recallIdle = 20 * time.Second
)

// recallSteps are what part memory measures, in its order.
var recallSteps = []struct {
	name string
	run  func(*recallBench, context.Context) error
}{
	{"vectors", (*recallBench).vectors}, {"library", (*recallBench).library}, {"quality", (*recallBench).quality},
	{"hybrid", (*recallBench).hybrid}, {"mesh", (*recallBench).mesh}, {"idle", (*recallBench).idle},
	{"why", (*recallBench).why},
}

// A recallBench measures what agents remember and find again.
type recallBench struct {
	*bench
	folder string // of sentences and their vectors
	test   string // the benchmarks of the room memory, built
}

// memoryPart measures the search for memories: the index alone and beside others, how good
// the order of what it finds is, and a mesh that remembers 100,000 sentences.
func memoryPart(ctx context.Context, b *bench) error {
	steps := strings.FieldsFunc(b.Memory, func(r rune) bool { return r == ' ' || r == ',' })
	for _, s := range steps {
		if !slices.ContainsFunc(recallSteps, func(k struct {
			name string
			run  func(*recallBench, context.Context) error
		}) bool {
			return k.name == s
		}) {
			return fmt.Errorf("part memory has no step %q", s)
		}
	}
	folder, err := filepath.Abs("../.cache/bench")
	if err != nil {
		return err
	}
	r := &recallBench{bench: b, folder: folder, test: filepath.Join(b.Dir, "memory.test")}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for _, s := range recallSteps {
		if len(steps) > 0 && !slices.Contains(steps, s.name) {
			continue
		}
		if err := s.run(r, ctx); err != nil {
			return fmt.Errorf("step %s: %w", s.name, err)
		}
	}
	return nil
}

// prepare fetches the sentences, has them embedded, and builds the benchmarks.
func (r *recallBench) prepare(ctx context.Context) error {
	args := []string{strconv.Itoa(r.Sentences)}
	if r.Embed > 0 {
		args = append(args, fmt.Sprint(r.Embed.Seconds()))
	}
	fmt.Println("# sentences are embedded by a model: the first time this takes the better part of an hour")
	cmd := exec.CommandContext(ctx, "../scripts/benchdata", args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("scripts/benchdata: %w", err)
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", r.test, "./memory")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	if _, err := os.Stat(filepath.Join(r.folder, "lexical-truth.u32")); err != nil {
		if _, err := r.ours(ctx, "SentencesEmbed"); err != nil {
			return err
		}
		if _, err := r.theirs(ctx, "lexical", "truth"); err != nil {
			return err
		}
	}
	_, err := r.theirs(ctx, "model", "truth")
	return err
}

// ours runs benchmarks of the room on one core and returns their metrics.
func (r *recallBench) ours(ctx context.Context, pattern string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, r.test, "-test.run", "^$", "-test.bench", "^Benchmark"+pattern+"$", "-test.benchtime",
		"1x", "-test.cpu", "1", "-test.timeout", "1h")
	cmd.Env, cmd.Stderr = append(os.Environ(), "SELVAGE_BENCH="+r.folder), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return measured(out), nil
}

// theirs runs hnswlib and returns the numbers that it prints.
func (r *recallBench) theirs(ctx context.Context, set string, args ...string) (out []float64, err error) {
	python := filepath.Join(r.folder, "../models/v/bin/python")
	cmd := exec.CommandContext(ctx, python, append([]string{"memory/rival.py", r.folder, set}, args...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"), os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	for f := range strings.FieldsSeq(string(b)) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, fmt.Errorf("%s printed %q", cmd, b)
		}
		out = append(out, v)
	}
	return out, nil
}

var setNames = map[string]string{"model": "of multilingual-e5-small", "lexical": "of selvage-lexical-1"}

// vectors builds and asks the graph beside hnswlib, one thread each, in turns.
func (r *recallBench) vectors(ctx context.Context) error {
	for _, set := range strings.Fields(r.Sets) {
		built, err := r.ours(ctx, "SentencesBuild/"+set)
		if err != nil {
			return err
		}
		of := func(metric string) float64 { return built["SentencesBuild/"+set+" "+metric] }
		theirBuild, err := r.theirs(ctx, set, "build")
		if err != nil || len(theirBuild) != 1 {
			return errors.Join(err, errors.New("hnswlib built nothing"))
		}
		n := of("vectors")
		what := fmt.Sprintf("%.0f vectors × 384 %s: ", n, setNames[set])
		row(what+"build, one thread", fmt.Sprintf("%.0f/s; hnswlib %.0f/s", of("vectors/s"), theirBuild[0]), "≥ 2000/s")
		row(what+"memory beside them", fmt.Sprintf("%.1f MB, vectors %.1f MB; per million %.0f MB and %.0f MB",
			of("MB-beside"), of("MB-vectors"), of("MB-beside")*1e6/n, of("MB-vectors")*1e6/n), "≤ 40 MB")
		row(what+"saved graph", fmt.Sprintf("%.1f MB in %.2f s; per million %.0f MB", of("MB-file"), of("s-save"),
			of("MB-file")*1e6/n), "")
		if err := r.inTurns(ctx, set, what); err != nil {
			return err
		}
	}
	return nil
}

func (r *recallBench) inTurns(ctx context.Context, set, what string) error {
	var own, their, ratio []float64
	var recall, load, theirRecall, beam float64
	for range r.Rounds {
		got, err := r.ours(ctx, "SentencesSearch/"+set)
		if err != nil {
			return err
		}
		name := "SentencesSearch/" + set + " "
		recall, load = got[name+"recall"], got[name+"s-load"]
		t, err := r.theirs(ctx, set, "search", "2", fmt.Sprint(recall))
		if err != nil || len(t) != 3 {
			return errors.Join(err, errors.New("hnswlib found nothing"))
		}
		theirRecall, beam = t[1], t[2]
		own, their, ratio = append(own, got[name+"queries/s"]), append(their, t[0]), append(ratio, got[name+"queries/s"]/t[0])
	}
	row(what+"recall@10 of an exact search", fmt.Sprintf("%.3f; hnswlib %.3f with a beam of %.0f", recall, theirRecall,
		beam), "≥ 0.95")
	row(what+"queries, one thread", spread(own, "/s"), "≥ 5000/s")
	row(what+"hnswlib at that recall", spread(their, "/s"), "")
	row(what+"ratio to hnswlib", spread(ratio, "x"), "≥ 0.5x, aim 1x")
	row(what+"the saved graph is loaded", fmt.Sprintf("%.2f s", load), "")
	return nil
}

// library asks an exact scan, and github.com/coder/hnsw behind the same interface.
func (r *recallBench) library(ctx context.Context) error {
	for _, set := range strings.Fields(r.Sets) {
		for _, who := range []struct{ name, what string }{{"Exact", "exact scan"}, {"Library", "github.com/coder/hnsw"}} {
			got, err := r.ours(ctx, "Sentences"+who.name+"/"+set)
			if err != nil {
				return err
			}
			name := "Sentences" + who.name + "/" + set + " "
			line := fmt.Sprintf("recall@10 %.3f at %.0f/s", got[name+"recall"], got[name+"queries/s"])
			if build := got[name+"vectors/s"]; build > 0 {
				line += fmt.Sprintf(", build %.0f/s", build)
			}
			row("vectors "+setNames[set]+": "+who.what, line, "")
		}
	}
	return nil
}

// quality tells the nDCG@10 of each source of vectors, beside words alone.
func (r *recallBench) quality(ctx context.Context) error {
	got, err := r.ours(ctx, "Quality")
	if err != nil {
		return err
	}
	for _, set := range []struct{ name, what string }{{"lee", "50 news texts that people judged (Lee)"},
		{"wordnet", "words ask for their definition (WordNet)"}} {
		of := func(by string) float64 { return got["Quality/"+set.name+" "+by] }
		row("nDCG@10, "+set.what,
			fmt.Sprintf("BM25 alone %.3f; selvage-lexical-1 %.3f, with BM25 %.3f; multilingual-e5-small %.3f, with BM25 %.3f",
				of("words"), of("lexical"), of("words+lexical"), of("model"), of("words+model")), "stated")
	}
	return nil
}

// hybrid searches the room's collection of all sentences without a node around it.
func (r *recallBench) hybrid(ctx context.Context) error {
	got, err := r.ours(ctx, "Hybrid")
	if err != nil {
		return err
	}
	row("search by words and vectors, the room alone", fmt.Sprintf("%.0f records, p50 %.2f ms, p95 %.2f ms",
		got["Hybrid records"], got["Hybrid µs-p50"]/1e3, got["Hybrid µs-p95"]/1e3), "p95 ≤ 10 ms")
	return nil
}

// why walks from entries of a chain of a million to their causes.
func (r *recallBench) why(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkWhy$", "-benchtime", "1x", "-timeout",
		"1h", "./api/why")
	cmd.Dir, cmd.Env, cmd.Stderr = "..", append(os.Environ(), "CGO_ENABLED=0", "SELVAGE_BENCH="+r.folder), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	got := measured(out)
	row("GET why of an issue, a run, a comment and an entry",
		fmt.Sprintf("chain of %.0f entries, p50 %.2f ms, p95 %.2f ms", got["Why entries"], got["Why µs-p50"]/1e3,
			got["Why µs-p95"]/1e3), "p95 ≤ 20 ms")
	return nil
}

// mesh measures three nodes that remember all sentences. With -dir they are kept, and the
// next run goes on with them.
func (r *recallBench) mesh(ctx context.Context) error {
	return r.remember(ctx, "recall", r.Sentences, r.searched)
}

// idle measures three nodes that remember a few sentences, when their minds are done with
// them. With all sentences that takes half an hour: a mind works within its budget.
func (r *recallBench) idle(ctx context.Context) error {
	return r.remember(ctx, "resting", min(r.Sentences, restingSentences), (*remembering).idle)
}

// remember starts or returns to the mesh of a name and has it remember so many sentences.
func (r *recallBench) remember(ctx context.Context, name string, count int,
	measure func(*remembering, context.Context) error) (err error) {
	m, err := startMeshAs(ctx, r.Config, name, recallHTTPPort, recallMeshPort)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.down()) }()
	if _, err := m.leader(ctx); err != nil {
		return err
	}
	texts, err := readLines(filepath.Join(r.folder, "sentences.txt"))
	if err != nil {
		return err
	}
	c, err := m.remembering(ctx)
	if err != nil {
		return err
	}
	if err := c.fill(ctx, texts[:min(count, len(texts))], r.Clients); err != nil {
		return err
	}
	if err := c.indexed(ctx); err != nil || r.Fill {
		return err
	}
	return measure(c, ctx)
}

// searched measures searches, additions, and starts of a mesh that remembers all sentences.
func (r *recallBench) searched(c *remembering, ctx context.Context) error {
	questions, err := readLines(filepath.Join(r.folder, "questions.txt"))
	if err != nil {
		return err
	}
	mem, err := c.memory()
	if err != nil {
		return err
	}
	row(fmt.Sprintf("memory of a node (RSS) with %d memories", c.count), mem, "")
	for _, mode := range []string{"both", "words", "vectors"} {
		got := measure(ctx, 1, r.Seconds, func(ctx context.Context, w, i int) error {
			return c.call(ctx, i%3, "POST", "/api/v1/memory/search", "", "", map[string]any{"companyId": c.company,
				"query": questions[i%len(questions)], "by": mode, "limit": 10}, nil)
		})
		if got.n() == 0 {
			return fmt.Errorf("no search succeeded: %w", got.last)
		}
		want := ""
		if mode == "both" {
			want = "p95 ≤ 10 ms"
		}
		row(fmt.Sprintf("search %d memories over HTTP, %s", c.count, mode), fmt.Sprintf("p50 %s, p95 %s, p99 %s, %.0f/s",
			got.quantile(.5), got.quantile(.95), got.quantile(.99), got.rate()), want)
	}
	if err := c.findable(ctx); err != nil {
		return err
	}
	return c.restart(ctx)
}

func readLines(path string) (out []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out, s.Err()
}

// A remembering is a company of a mesh that remembers sentences.
type remembering struct {
	*mesh
	company string
	count   int
}

// remembering returns the company of a mesh that was filled before, or a new one.
func (m *mesh) remembering(ctx context.Context) (*remembering, error) {
	var all []struct{ ID, Name string }
	if err := m.call(ctx, 0, "GET", "/api/companies", "", "", nil, &all); err != nil {
		return nil, err
	}
	c := &remembering{mesh: m}
	for _, row := range all {
		if row.Name == recallCompany {
			c.company = row.ID
		}
	}
	if c.company == "" {
		var row struct{ ID string }
		if err := m.call(ctx, 0, "POST", "/api/companies", "", "", map[string]any{"name": recallCompany}, &row); err != nil {
			return nil, err
		}
		c.company = row.ID
	}
	s, err := c.stats(ctx, 0)
	c.count = s.Memories
	return c, err
}

type memoryStats struct {
	Memories, Indexed int
	Building          *struct{ Done, Of int }
	Models            []struct{ Vectors, Linked int }
}

// whole reports whether all memories are in the index, and in the graph where there is one.
func (s memoryStats) whole(count int) bool {
	return s.Building == nil && s.Indexed >= count && len(s.Models) > 0 &&
		(s.Models[0].Linked == s.Models[0].Vectors || s.Models[0].Vectors < recallGraphFrom)
}

func (c *remembering) stats(ctx context.Context, node int) (s memoryStats, err error) {
	err = c.call(ctx, node, "GET", "/api/v1/memory/stats?companyId="+url.QueryEscape(c.company), "", "", nil, &s)
	return s, err
}

// fill adds what is missing of the texts.
func (c *remembering) fill(ctx context.Context, texts []string, clients int) error {
	if c.count >= len(texts) {
		return nil
	}
	var next atomic.Int64
	next.Store(int64(c.count))
	began, missing := time.Now(), len(texts)-c.count
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for w := range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(texts) && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = c.add(ctx, w%3, texts[i], i)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.count = len(texts)
	took := time.Since(began)
	row(fmt.Sprintf("POST memory, %d clients", clients), fmt.Sprintf("%.0f/s, %d memories",
		float64(missing)/took.Seconds(), missing), "")
	return nil
}

// add adds a sentence. On a machine that is full of other work it may not be known whether
// that was done: it is added again, and may be there twice.
func (c *remembering) add(ctx context.Context, node int, text string, number int) (err error) {
	for range 20 {
		err = c.call(ctx, node, "POST", "/api/v1/memory", "", "", map[string]any{"companyId": c.company,
			"text": text, "tags": []string{fmt.Sprint("t", number%50)}}, nil)
		if err == nil || !strings.Contains(err.Error(), "outcome_unknown") {
			break
		}
	}
	return err
}

// indexed waits until every node has everything in its index, and in its graph.
func (c *remembering) indexed(ctx context.Context) error {
	began := time.Now()
	for node := range c.nodes {
		for {
			s, err := c.stats(ctx, node)
			if err == nil && s.whole(c.count) {
				break
			}
			if time.Since(began) > recallWait {
				return fmt.Errorf("node %d has not indexed everything after %s: %+v %v", node, recallWait, s, err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	fmt.Printf("# every node had everything in its graph after %s more\n", time.Since(began).Round(100*time.Millisecond))
	return nil
}

// findable adds memories, and asks each node for them until it finds them.
func (c *remembering) findable(ctx context.Context) error {
	var took []time.Duration
	for n := range recallTries {
		word := fmt.Sprintf("quokka%dx%d", time.Now().UnixMilli(), n)
		began := time.Now()
		if err := c.call(ctx, n%3, "POST", "/api/v1/memory", "", "", map[string]any{"companyId": c.company, "text": "A " +
			word + " was seen"}, nil); err != nil {
			return err
		}
		after := make([]time.Duration, len(c.nodes))
		var wg sync.WaitGroup
		for node := range c.nodes {
			wg.Go(func() {
				for after[node] == 0 && time.Since(began) < time.Minute {
					var a struct{ Results []struct{} }
					err := c.call(ctx, node, "POST", "/api/v1/memory/search", "", "", map[string]any{"companyId": c.company,
						"query": word, "by": "words"}, &a)
					if err == nil && len(a.Results) > 0 {
						after[node] = time.Since(began)
					}
				}
			})
		}
		wg.Wait()
		if slices.Contains(after, 0) {
			return errors.New("a memory is not found a minute after it was added")
		}
		took = append(took, slices.Max(after))
	}
	slices.Sort(took)
	row("from adding a memory until every node finds it", fmt.Sprintf("p50 %s, worst of %d %s",
		took[len(took)/2].Round(time.Millisecond/10), len(took), took[len(took)-1].Round(time.Millisecond/10)), "≤ 200 ms")
	c.count += recallTries
	return nil
}

type mindStats struct {
	State string
	Tick  struct{ Count, MeanMicros, MaxMicros, BudgetMicros int }
	Loop  struct{ Linked int }
}

func (c *remembering) mind(ctx context.Context, node int) (s mindStats, err error) {
	err = c.call(ctx, node, "GET", "/api/v1/mind", "", "", nil, &s)
	return s, err
}

// idle waits until the mind rests, and looks what a mesh costs that has nothing to do.
func (c *remembering) idle(ctx context.Context) error {
	leader, err := c.leader(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var s mindStats
	for {
		if s, err = c.mind(ctx, leader); err == nil && s.State != "ticking" {
			break
		}
		if time.Since(began) > recallWait || err != nil {
			return fmt.Errorf("the mind is at work still: %+v %w", s, err)
		}
		time.Sleep(time.Second)
	}
	row("the mind's work on what was added", fmt.Sprintf("%d ticks of %.2f ms, longest %.2f ms, budget %.2f ms; %d pairs",
		s.Tick.Count, float64(s.Tick.MeanMicros)/1e3, float64(s.Tick.MaxMicros)/1e3, float64(s.Tick.BudgetMicros)/1e3,
		s.Loop.Linked), "within its budget")
	time.Sleep(5 * time.Second)
	before := cpuMicros(c.nodes[leader].PID)
	first, err := c.mind(ctx, leader)
	if err != nil {
		return err
	}
	time.Sleep(recallIdle)
	last, err := c.mind(ctx, leader)
	if err != nil {
		return err
	}
	used := (cpuMicros(c.nodes[leader].PID) - before) / float64(recallIdle.Microseconds())
	ticks := last.Tick.Count - first.Tick.Count
	row("idle cost of the tick at the leader", fmt.Sprintf("%d ticks in %s: %.2f %% of a core; the whole node %.1f %%",
		ticks, recallIdle, 100*float64(ticks*last.Tick.MeanMicros)/float64(recallIdle.Microseconds()), 100*used),
		"< 1 % of a core")
	return nil
}

// restart kills a follower and looks how soon it serves again, and searches everything.
func (c *remembering) restart(ctx context.Context) error {
	var ready, whole []time.Duration
	for range 3 {
		leader, err := c.leader(ctx)
		if err != nil {
			return err
		}
		at := (leader + 1) % len(c.nodes)
		n := c.nodes[at]
		if _, err := c.testnet(ctx, "kill", n.Name); err != nil {
			return err
		}
		began := time.Now()
		started := make(chan error, 1)
		go func() {
			_, err := c.testnet(ctx, "start", n.Name)
			started <- err
		}()
		for ok := false; !ok; time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				return fmt.Errorf("%s is not ready a minute after its start", n.Name)
			}
			if res, err := c.http.Get(n.HTTP + "/readyz"); err == nil {
				res.Body.Close()
				ok = res.StatusCode == http.StatusOK
			}
		}
		ready = append(ready, time.Since(began))
		for {
			s, err := c.stats(ctx, at)
			if err == nil && s.whole(c.count) {
				break
			}
			if time.Since(began) > recallWait {
				return fmt.Errorf("%s has not indexed everything: %+v %v", n.Name, s, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		whole = append(whole, time.Since(began))
		if err := <-started; err != nil {
			return err
		}
		if err := c.status(ctx); err != nil {
			return err
		}
	}
	rowDurations(fmt.Sprintf("start with %d memories: ready", c.count), ready, "≤ 3 s")
	rowDurations("and everything is in its index and graph", whole, "")
	return nil
}
