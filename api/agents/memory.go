package agents

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxRecalled bounds the memories of one answer to a search.
const maxRecalled = 100

func MemoryRoutes() []api.Route {
	const tag, at, inbox = "agents", "/api/agents/{id}/memory", "/api/agents/{id}/messages"
	return []api.Route{
		{Method: "GET", Path: at, Tag: tag, Summary: "List what an agent keeps; with q, what fits its words best first",
			Out: []recalled{},
			Query: append(api.ByName(), api.Param{Name: "q", Doc: "words to look for, in keys and texts"},
				api.Param{Name: "limit", Doc: "at most so many; 100 with q"}), Handle: listMemories},
		api.Read(api.Route{Path: at + "/{key}", Tag: tag, Summary: "Read what an agent keeps under a key",
			Query: api.ByName()}, readMemory),
		api.Change[skill.Memory](api.Route{Method: "PUT", Path: at + "/{key}", Tag: tag, Summary: "Keep a text under a key",
			Query: api.ByName()}, skill.KindMemoryPut, agentAt,
			func(rc *api.Request, agent string, in memoryBody) (skill.PutMemory, error) {
				return skill.PutMemory{Agent: agent, Key: rc.Path("key"), Value: in.Value}, nil
			}),
		api.Remove[skill.Memory](api.Route{Path: at + "/{key}", Tag: tag, Summary: "Forget what is under a key",
			Query: api.ByName()}, skill.KindMemoryDelete, agentAt,
			func(rc *api.Request, agent string) skill.DropMemory {
				return skill.DropMemory{Agent: agent, Key: rc.Path("key")}
			}),
		{Method: "GET", Path: inbox, Tag: tag, Summary: "List the messages that wait for an agent, oldest first",
			Out:    []skill.Message{},
			Query:  append(api.ByName(), api.Param{Name: "limit", Doc: "at most so many; 100 unless given"}),
			Handle: listMessages},
		{Method: "POST", Path: inbox, Tag: tag, Summary: "Send a message to an agent, which takes it when it runs next",
			Query: api.ByName(), In: messageBody{}, Out: skill.Message{}, Status: 201, Handle: sendMessage},
		{Method: "POST", Path: inbox + "/take", Tag: tag, Summary: "Take messages out of an inbox", Query: api.ByName(),
			In: takeBody{}, Out: takenMessages{}, Handle: takeMessages},
	}
}

type (
	memoryBody struct {
		Value string `json:"value" maxLength:"16384" maxBytes:"16384"`
	}
	messageBody struct {
		Type        string          `json:"type,omitempty" maxLength:"128" maxBytes:"128"`
		Correlation string          `json:"correlationId,omitempty" maxLength:"128" maxBytes:"128"`
		Payload     json.RawMessage `json:"payload,omitempty" maxBytes:"16384"`
	}
	takeBody struct {
		IDs []string `json:"ids" minItems:"1" maxItems:"256"`
	}
	takenMessages struct {
		Taken int64 `json:"taken"`
	}
	// A recalled memory has a score if the request had a query.
	recalled struct {
		skill.Memory
		Score *float64 `json:"score"`
	}
)

// ownOrBoard returns the agent in the path. Only this agent and the board may read its memory
// and its inbox.
func ownOrBoard(tx *ledger.Tx, rc *api.Request) (entity.Agent, error) {
	a, err := api.AgentIn(tx, rc)
	if err == nil && rc.Actor.Type == "agent" && rc.Actor.ID != a.ID {
		return a, api.Forbidden("An agent reads its own memory and messages only")
	}
	return a, err
}

func limitOf(rc *api.Request, most int) (int, error) {
	text := rc.Query("limit")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, api.Invalid("Invalid limit: expected a positive number")
	}
	return min(n, most), nil
}

func listMemories(rc *api.Request) (api.Response, error) {
	most := skill.MaxMemories
	if rc.Query("q") != "" {
		most = maxRecalled
	}
	limit, err := limitOf(rc, most)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]recalled, error) {
		a, err := ownOrBoard(tx, rc)
		if err != nil {
			return nil, err
		}
		out := recall(skill.MemoriesOf(tx, a.Company, a.ID), rc.Query("q"))
		return out[:min(len(out), limit)], nil
	})
}

// recall ranks memories by the words of a question (BM25 over the agent's memories; words in
// a key count three times) and omits memories that have none of the words. It compares words,
// not meanings.
func recall(all []skill.Memory, question string) []recalled {
	out := []recalled{}
	if strings.TrimSpace(question) == "" {
		for _, m := range all {
			out = append(out, recalled{Memory: m})
		}
		return out
	}
	wanted := termsOf(question)
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	counts, within, total := make([]map[string]int, len(all)), map[string]int{}, 0
	lengths := make([]int, len(all))
	for n, m := range all {
		counts[n] = map[string]int{}
		words := termsOf(m.Value)
		for range 3 {
			words = append(words, termsOf(m.Key)...)
		}
		for _, w := range words {
			counts[n][w]++
		}
		lengths[n] = len(words)
		total += len(words)
		for _, w := range wanted {
			if counts[n][w] > 0 {
				within[w]++
			}
		}
	}
	mean := float64(max(total, 1)) / float64(max(len(all), 1))
	for n, m := range all {
		score := 0.0
		for _, w := range wanted {
			if f := float64(counts[n][w]); f > 0 {
				rare := math.Log(1 + (float64(len(all)-within[w])+0.5)/(float64(within[w])+0.5))
				score += rare * f * 2.2 / (f + 1.2*(0.25+0.75*float64(lengths[n])/mean))
			}
		}
		if score > 0 {
			out = append(out, recalled{m, &score})
		}
	}
	slices.SortStableFunc(out, func(a, b recalled) int { return cmp.Compare(*b.Score, *a.Score) })
	return out
}

func termsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func readMemory(tx *ledger.Tx, rc *api.Request) (m skill.Memory, err error) {
	a, err := ownOrBoard(tx, rc)
	if err != nil {
		return m, err
	}
	m, ok := skill.MemoryOf(tx, a.Company, a.ID, rc.Path("key"))
	if !ok {
		return m, api.NotFound("Memory not found")
	}
	return m, nil
}

func listMessages(rc *api.Request) (api.Response, error) {
	limit, err := limitOf(rc, maxRecalled)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]skill.Message, error) {
		a, err := ownOrBoard(tx, rc)
		if err != nil {
			return nil, err
		}
		return skill.InboxOf(tx, a.Company, a.ID, limit), nil
	})
}

func sendMessage(rc *api.Request) (api.Response, error) {
	in, err := api.Body[messageBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	if in.Payload == nil {
		in.Payload = json.RawMessage("{}")
	}
	row, err := api.Do[skill.Message](rc, skill.KindMessageSend, a.Company,
		skill.SendMessage{ID: api.NewID(), To: a.ID, Type: in.Type, Correlation: in.Correlation, Payload: in.Payload})
	return api.Response{Status: 201, Body: row}, err
}

func takeMessages(rc *api.Request) (api.Response, error) {
	in, err := api.Body[takeBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	out, err := api.Do[map[string]int64](rc, skill.KindMessageTake, a.Company, skill.TakeMessages{Agent: a.ID,
		IDs: in.IDs})
	return api.OK(takenMessages{out["taken"]}), err
}
