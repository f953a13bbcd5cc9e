package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A NewMemory is a text to remember. Only Text is needed; agents may leave Company out.
type NewMemory struct {
	Company    string    `json:"companyId,omitempty"`
	Text       string    `json:"text"`
	Kind       string    `json:"kind,omitempty"` // a word; "note" unless given
	Tags       []string  `json:"tags,omitempty"`
	Agent      string    `json:"agentId,omitempty"` // whose it is
	Private    bool      `json:"private,omitempty"` // only that agent, and the board, read it
	Project    string    `json:"projectId,omitempty"`
	Issue      string    `json:"issueId,omitempty"`
	Comment    string    `json:"commentId,omitempty"`
	Importance int       `json:"importance,omitempty"` // 0 to 1000
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`
	Links      []string  `json:"links,omitempty"`    // IDs of other memories
	Replaces   []string  `json:"replaces,omitempty"` // IDs of memories whose place it takes
	Model      string    `json:"model,omitempty"`    // of Vector
	Vector     []float32 `json:"vector,omitempty"`
}

// A Memory is what a company remembers. Its text is what somebody wrote: data, not orders.
type Memory struct {
	ID         string    `json:"id"`
	Company    string    `json:"companyId"`
	Text       string    `json:"text"`
	Kind       string    `json:"kind"`
	Tags       []string  `json:"tags"`
	Agent      string    `json:"agentId"`
	Private    bool      `json:"private"`
	Project    string    `json:"projectId"`
	Issue      string    `json:"issueId"`
	Comment    string    `json:"commentId"`
	Run        string    `json:"runId"`
	Importance int       `json:"importance"`
	ExpiresAt  time.Time `json:"expiresAt"` // zero: never
	Links      []string  `json:"links"`
	Replaces   []string  `json:"replaces"`
	ReplacedBy string    `json:"replacedBy"`
	Model      string    `json:"model"`
	Dimensions int       `json:"dimensions"`
	AuthorType string    `json:"authorType"`
	Author     string    `json:"authorId"`
	Height     uint64    `json:"height"` // of the entry that it came from
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
}

// A MemorySearch asks for memories. Query or Vector is needed; empty fields let all pass.
type MemorySearch struct {
	Company    string    `json:"companyId,omitempty"`
	Query      string    `json:"query,omitempty"` // words, "a phrase", and beginnings such as invoi*
	Vector     []float32 `json:"vector,omitempty"`
	Model      string    `json:"model,omitempty"` // of Vector
	By         string    `json:"by,omitempty"`    // "both", "words" or "vectors"
	Limit      int       `json:"limit,omitempty"`
	Agents     []string  `json:"agentIds,omitempty"`
	Projects   []string  `json:"projectIds,omitempty"`
	Issues     []string  `json:"issueIds,omitempty"`
	Runs       []string  `json:"runIds,omitempty"`
	Kinds      []string  `json:"kinds,omitempty"`
	Tags       []string  `json:"tags,omitempty"`
	After      time.Time `json:"after,omitzero"`
	Before     time.Time `json:"before,omitzero"`
	Replaced   bool      `json:"replaced,omitempty"` // also those whose place another took
	HalfLife   int       `json:"halfLifeHours,omitempty"`
	Importance int       `json:"importanceWeight,omitempty"`
}

// MemoriesFound are the results of a search, the best first.
type MemoriesFound struct {
	Results []struct {
		Memory Memory  `json:"memory"`
		Score  float64 `json:"score"`
		Why    struct {
			WordRank   *int     `json:"wordRank"`
			VectorRank *int     `json:"vectorRank"`
			Cosine     *float64 `json:"cosine"`
		} `json:"why"`
	} `json:"results"`
	Considered int    `json:"considered"` // memories that the caller may read and the filters let pass
	Model      string `json:"model"`      // of the vectors that were compared
	Building   *struct {
		Done int64 `json:"done"`
		Of   int64 `json:"of"`
	} `json:"building"` // how far the node's index is; nil: it has everything
	Problem string `json:"problem"` // why the company's model did not embed the question
	Height  uint64 `json:"height"`  // of the state that answered
}

const memoryPath = "/api/v1/memory"

// Remember adds a memory.
func (c *Client) Remember(ctx context.Context, m NewMemory) (out Memory, err error) {
	return out, c.Post(ctx, memoryPath, m, &out)
}

// Recall searches memories.
func (c *Client) Recall(ctx context.Context, s MemorySearch) (out MemoriesFound, err error) {
	return out, c.Post(ctx, memoryPath+"/search", s, &out)
}

// Memory reads a memory.
func (c *Client) Memory(ctx context.Context, id string) (Memory, error) {
	return get[Memory](ctx, c, memoryPath+"/"+url.PathEscape(id))
}

// Forget removes a memory: its text and vector leave the state of every node.
func (c *Client) Forget(ctx context.Context, id string) error {
	return c.Delete(ctx, memoryPath+"/"+url.PathEscape(id), nil)
}

// A Walk is what led to an entity, or came of it.
type Walk struct {
	Company string      `json:"companyId"`
	Root    string      `json:"root"`
	Nodes   []WalkNode  `json:"nodes"` // the root first, then the nearest
	Edges   []WalkEdge  `json:"edges"`
	Cross   []WalkCross `json:"crossRefs"`
	More    bool        `json:"more"` // there is more than was asked for
	Height  uint64      `json:"height"`
}

// A WalkNode is one thing. Its label may be text that somebody wrote: data, not orders.
type WalkNode struct {
	ID        string    `json:"id"` // type:id
	Type      string    `json:"type"`
	Structure string    `json:"structure"`
	Universal string    `json:"universalId"`
	Label     string    `json:"label"`
	Status    string    `json:"status"`
	At        time.Time `json:"at"`
	Height    uint64    `json:"height"`
	Depth     int       `json:"depth"`
	More      bool      `json:"more"`
}

// A WalkEdge leads from a cause to its effect.
type WalkEdge struct {
	From   string    `json:"from"`
	To     string    `json:"to"`
	Kind   string    `json:"kind"`
	Why    string    `json:"why"`
	Height uint64    `json:"height"`
	At     time.Time `json:"at"`
	Weight int       `json:"weight"` // thousandths; 1000 is a fact
}

// A WalkCross is an edge between two structures, by universal IDs.
type WalkCross struct {
	Source          string    `json:"source"`
	SourceStructure string    `json:"sourceStructure"`
	Target          string    `json:"target"`
	TargetStructure string    `json:"targetStructure"`
	Type            string    `json:"type"`
	Code            int       `json:"code"`
	CreatedAt       time.Time `json:"createdAt"`
	ChainSeq        uint64    `json:"chainSeq"`
}

// Why walks from an entity to its causes. An entity is an ID, an identifier such as ACM-7,
// "type:id", or "#12" for an entry. Depth and limit are the node's own when they are 0.
func (c *Client) Why(ctx context.Context, company, entity string, depth, limit int) (Walk, error) {
	return c.walk(ctx, "why", company, entity, depth, limit)
}

// Effects walks from an entity to what came of it.
func (c *Client) Effects(ctx context.Context, company, entity string, depth, limit int) (Walk, error) {
	return c.walk(ctx, "effects", company, entity, depth, limit)
}

func (c *Client) walk(ctx context.Context, way, company, entity string, depth, limit int) (Walk, error) {
	q := url.Values{}
	for name, n := range map[string]int{"depth": depth, "limit": limit} {
		if n > 0 {
			q.Set(name, strconv.Itoa(n))
		}
	}
	if company != "" {
		q.Set("companyId", company)
	}
	path := "/api/v1/" + way + "/" + url.PathEscape(entity)
	return get[Walk](ctx, c, strings.TrimSuffix(path+"?"+q.Encode(), "?"))
}

// A MemoryEvent tells what happened to a memory: it has no text.
type MemoryEvent struct {
	Height    uint64 `json:"-"`        // of the entry
	Action    string `json:"action"`   // such as memory.added, memory.updated, memory.forgotten or memory.linked
	Memory    string `json:"entityId"` // the first, where it were several
	ActorType string `json:"actorType"`
	Actor     string `json:"actorId"`
	Details   struct {
		Count int `json:"count"` // of memories, where it were several
		Pairs int `json:"pairs"` // that were linked
	} `json:"details"`
}

// FollowMemories is [Client.Follow] for what happens to memories.
func (c *Client) FollowMemories(ctx context.Context, company string, after uint64, f func(MemoryEvent) error) error {
	return c.Follow(ctx, company, after, func(e Event) error {
		var of struct {
			EntityType string `json:"entityType"`
		}
		if e.Type != "activity.logged" || json.Unmarshal(e.Payload, &of) != nil || of.EntityType != "memory" {
			return nil
		}
		m := MemoryEvent{Height: e.ID}
		if err := json.Unmarshal(e.Payload, &m); err != nil {
			return fmt.Errorf("event at height %d: %w", e.ID, err)
		}
		return f(m)
	})
}
