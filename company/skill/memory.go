package skill

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxMemories and MaxMemoryBytes bound the memories of one agent, MaxMemoryValue one of
	// them, in bytes: every node stores all of it.
	MaxMemories    = 500
	MaxMemoryValue = 16 << 10
	MaxMemoryBytes = 1 << 20
	// MaxInbox bounds the messages that wait for one agent, MaxMessage one of them, in bytes.
	MaxInbox   = 1024
	MaxMessage = 16 << 10
	// MaxTaken bounds the messages that one message.take removes.
	MaxTaken = 256
	// maxMessageType bounds the type and the correlation of a message, in bytes.
	maxMessageType = 128
)

// A Memory is a text that an agent stores under a key. Its runs on every node can read it.
// Only the agent and the board may read it.
type Memory struct {
	Company   ledger.CompanyID `cbor:"1,keyasint" json:"companyId"`
	Agent     string           `cbor:"2,keyasint" json:"agentId"`
	Key       string           `cbor:"3,keyasint" json:"key"`
	Value     string           `cbor:"4,keyasint" json:"value"`
	CreatedAt core.Time        `cbor:"5,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"6,keyasint" json:"updatedAt"`
}

// A memoryUse counts the memories of an agent and the messages in its inbox.
type memoryUse struct {
	Memories int64 `cbor:"1,keyasint,omitempty"`
	Bytes    int64 `cbor:"2,keyasint,omitempty"`
	Inbox    int64 `cbor:"3,keyasint,omitempty"`
}

// A Message waits in the inbox of an agent until the agent takes it. It does not wake the
// agent.
type Message struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	To          string           `cbor:"3,keyasint" json:"toAgentId"`
	From        string           `cbor:"4,keyasint" json:"fromId"`   // agent or person
	FromType    string           `cbor:"5,keyasint" json:"fromType"` // agent or user
	Type        string           `cbor:"6,keyasint,omitempty" json:"type"`
	Correlation core.NullText    `cbor:"7,keyasint,omitempty" json:"correlationId"`
	Payload     json.RawMessage  `cbor:"8,keyasint" json:"payload"`
	Height      uint64           `cbor:"9,keyasint" json:"height"` // height of its entry
	SentAt      core.Time        `cbor:"10,keyasint" json:"sentAt"`
}

// Clone returns a copy that shares nothing with m.
func (m Message) Clone() Message {
	m.Payload = append(json.RawMessage(nil), m.Payload...)
	return m
}

var (
	memories   = ledger.NewTable[string, Memory]("memory")
	memoryUses = ledger.NewTable[string, memoryUse]("memory-use")
	messages   = ledger.NewTable[string, Message]("message")

	memoryKeys = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
)

// MemoriesOf returns the memories of an agent, by key.
func MemoriesOf(tx *ledger.Tx, company ledger.CompanyID, agent string) []Memory {
	out := []Memory{}
	for _, b := range tx.Prefix(memories.Key(company, agent+".")) {
		out = append(out, core.DecodeRow[Memory](b))
	}
	return out
}

// MemoryOf returns the memory of an agent under a key.
func MemoryOf(tx *ledger.Tx, company ledger.CompanyID, agent, key string) (Memory, bool) {
	return memories.Get(tx, company, agent+"."+key)
}

// InboxOf returns the messages that wait for an agent, oldest first, at most limit.
func InboxOf(tx *ledger.Tx, company ledger.CompanyID, agent string, limit int) []Message {
	out := []Message{}
	for _, b := range tx.Prefix(messages.Key(company, agent+".")) {
		if len(out) == limit {
			break
		}
		out = append(out, core.DecodeRow[Message](b))
	}
	return out
}

// PutMemory is the payload of memory.put.
type PutMemory struct {
	Agent string `cbor:"1,keyasint"`
	Key   string `cbor:"2,keyasint"`
	Value string `cbor:"3,keyasint"`
}

// DropMemory is the payload of memory.delete.
type DropMemory struct {
	Agent string `cbor:"1,keyasint"`
	Key   string `cbor:"2,keyasint"`
}

// SendMessage is the payload of message.send. The caller chooses the ID.
type SendMessage struct {
	ID          string          `cbor:"1,keyasint"`
	To          string          `cbor:"2,keyasint"`
	Type        string          `cbor:"3,keyasint,omitempty"`
	Correlation string          `cbor:"4,keyasint,omitempty"`
	Payload     json.RawMessage `cbor:"5,keyasint"`
}

// TakeMessages is the payload of message.take, by which an agent removes messages that it
// has handled. IDs of messages that are already removed are ignored.
type TakeMessages struct {
	Agent string   `cbor:"1,keyasint"`
	IDs   []string `cbor:"2,keyasint"`
}

const (
	KindMemoryPut    = "memory.put"
	KindMemoryDelete = "memory.delete"
	KindMessageSend  = "message.send"
	KindMessageTake  = "message.take"
)

var memoryKinds = []company.Kind{
	{Name: KindMemoryPut, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Text, Do: ledger.Typed(putMemory)},
	{Name: KindMemoryDelete, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Erase,
		Do: ledger.Typed(dropMemory)},
	{Name: KindMessageSend, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Talk,
		Do: ledger.Typed(sendMessage)},
	{Name: KindMessageTake, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Talk,
		Do: ledger.Typed(takeMessages)},
}

// ownMemory refuses an actor who may not change the memory and inbox of an agent. The board
// may change every agent's, an agent its own.
func ownMemory(c *ledger.Context, agent string) error {
	if _, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, agent); !ok {
		return entity.ErrNoAgent()
	}
	if !core.IsBoard(c) && c.Cmd.Actor.ID != agent {
		return ledger.Refuse(ledger.Forbidden, nil, "Only the board or the agent itself can do that")
	}
	return nil
}

func putMemory(c *ledger.Context, p PutMemory) (any, error) {
	company := c.Cmd.Company
	if err := ownMemory(c, p.Agent); err != nil {
		return nil, err
	}
	if !memoryKeys.MatchString(p.Key) {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"A key has up to 128 letters, digits, dots, colons, dashes and underscores")
	}
	if len(p.Value) > MaxMemoryValue {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A memory has at most %d bytes", MaxMemoryValue)
	}
	now := core.TimeOf(c.Now)
	use, _ := memoryUses.Get(c.Tx, company, p.Agent)
	m, had := MemoryOf(c.Tx, company, p.Agent, p.Key)
	if !had {
		m = Memory{Company: company, Agent: p.Agent, Key: p.Key, CreatedAt: now}
		use.Memories++
	}
	use.Bytes += int64(len(p.Value) - len(m.Value))
	if use.Memories > MaxMemories || use.Bytes > MaxMemoryBytes {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"An agent keeps at most %d memories of %d bytes in all; delete some first", MaxMemories, MaxMemoryBytes)
	}
	m.Value, m.UpdatedAt = p.Value, now
	memoryUses.Put(c.Tx, company, p.Agent, use)
	c.Record(ledger.Change{Action: "agent.memory_put", EntityType: "agent", EntityID: p.Agent,
		Details: core.Object{}.Str("key", p.Key).Int("bytes", int64(len(p.Value))).Close()})
	return memories.Put(c.Tx, company, p.Agent+"."+p.Key, m), nil
}

func dropMemory(c *ledger.Context, p DropMemory) (any, error) {
	company := c.Cmd.Company
	if err := ownMemory(c, p.Agent); err != nil {
		return nil, err
	}
	m, ok := MemoryOf(c.Tx, company, p.Agent, p.Key)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Memory not found")
	}
	use, _ := memoryUses.Get(c.Tx, company, p.Agent)
	use.Memories, use.Bytes = use.Memories-1, use.Bytes-int64(len(m.Value))
	memoryUses.Put(c.Tx, company, p.Agent, use)
	memories.Delete(c.Tx, company, p.Agent+"."+p.Key)
	c.Record(ledger.Change{Action: "agent.memory_deleted", EntityType: "agent", EntityID: p.Agent,
		Details: core.Object{}.Str("key", p.Key).Close()})
	return m, nil
}

// messageRow is the key of a message; keys sort by the time of sending.
func messageRow(agent string, height uint64, id string) string {
	return fmt.Sprintf("%s.%016x.%s", agent, height, id)
}

func sendMessage(c *ledger.Context, p SendMessage) (any, error) {
	of := c.Cmd.Company
	to, ok := entity.AgentTable.Get(c.Tx, of, p.To)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	if to.Status == entity.AgentTerminated {
		return nil, ledger.Refuse(ledger.Conflict, to.Standing(), "The agent is terminated and takes no messages")
	}
	if p.ID == "" || len(p.Type) > maxMessageType || len(p.Correlation) > maxMessageType {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"A message has an ID, and a type and a correlation of at most %d bytes", maxMessageType)
	}
	if len(p.Payload) > MaxMessage || !json.Valid(p.Payload) {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A message's payload is JSON of at most %d bytes", MaxMessage)
	}
	use, _ := memoryUses.Get(c.Tx, of, to.ID)
	if use.Inbox >= MaxInbox {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The agent's inbox is full: %d messages wait", MaxInbox)
	}
	use.Inbox++
	memoryUses.Put(c.Tx, of, to.ID, use)
	m := Message{ID: p.ID, Company: of, To: to.ID, From: c.Cmd.Actor.ID, FromType: c.Cmd.Actor.Type, Type: p.Type,
		Correlation: core.NullText(p.Correlation),
		Payload:     p.Payload, Height: c.Height, SentAt: core.TimeOf(c.Now)}
	c.Record(ledger.Change{Action: "agent.message_sent", EntityType: "agent", EntityID: to.ID,
		Details: core.Object{}.Str("messageId", p.ID).Str("type", p.Type).Int("bytes", int64(len(p.Payload))).Close()})
	return messages.Put(c.Tx, of, messageRow(to.ID, c.Height, p.ID), m), nil
}

func takeMessages(c *ledger.Context, p TakeMessages) (any, error) {
	company := c.Cmd.Company
	if err := ownMemory(c, p.Agent); err != nil {
		return nil, err
	}
	if len(p.IDs) == 0 || len(p.IDs) > MaxTaken {
		return nil, ledger.Refuse(ledger.Invalid, nil, "1 to %d messages are taken at once", MaxTaken)
	}
	wanted := map[string]bool{}
	for _, id := range p.IDs {
		wanted[id] = true
	}
	taken := 0
	for _, m := range InboxOf(c.Tx, company, p.Agent, MaxInbox) {
		if wanted[m.ID] {
			messages.Delete(c.Tx, company, messageRow(p.Agent, m.Height, m.ID))
			taken++
		}
	}
	use, _ := memoryUses.Get(c.Tx, company, p.Agent)
	use.Inbox -= int64(taken)
	memoryUses.Put(c.Tx, company, p.Agent, use)
	c.Record(ledger.Change{Action: "agent.messages_taken", EntityType: "agent", EntityID: p.Agent,
		Details: core.Object{}.Int("count", int64(taken)).Close()})
	return map[string]int64{"taken": int64(taken)}, nil
}

// dropMemories deletes the memories and the inbox of an agent.
func dropMemories(tx *ledger.Tx, a entity.Agent) {
	for _, m := range MemoriesOf(tx, a.Company, a.ID) {
		memories.Delete(tx, a.Company, a.ID+"."+m.Key)
	}
	for _, m := range InboxOf(tx, a.Company, a.ID, MaxInbox) {
		messages.Delete(tx, a.Company, messageRow(a.ID, m.Height, m.ID))
	}
	memoryUses.Delete(tx, a.Company, a.ID)
}
