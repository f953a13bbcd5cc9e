package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
)

type listHolder struct {
	List []string `json:"list"`
}

type listsOfAll struct {
	listHolder
	Left    []string              `json:"left,omitempty"`
	Zero    []string              `json:"zero,omitzero"`
	Null    []string              `json:"null" nullable:"true"`
	Raw     json.RawMessage       `json:"raw"`
	Bytes   []byte                `json:"bytes"`
	At      time.Time             `json:"at"`
	Pointer *listHolder           `json:"pointer"`
	None    *listHolder           `json:"none"`
	Items   []listHolder          `json:"items"`
	Deep    [][]int               `json:"deep"`
	Map     map[string]listHolder `json:"map"`
	Any     any                   `json:"any"`
	More    []*listsOfAll         `json:"more"`
}

// An answer has an empty list where Go has none, wherever it stands, and what it was made
// from stays as it was.
func TestAnswersHaveEmptyListsForNilOnes(t *testing.T) {
	row := listsOfAll{Pointer: &listHolder{}, Items: make([]listHolder, 1), Deep: make([][]int, 1),
		Map: map[string]listHolder{"a": {}}, Any: listHolder{}}
	b, err := api.EncodeJSON(&row)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"list":[],"null":null,"raw":null,"bytes":null,"at":"0001-01-01T00:00:00Z",` +
		`"pointer":{"list":[]},"none":null,"items":[{"list":[]}],` +
		`"deep":[[]],"map":{"a":{"list":[]}},"any":{"list":[]},"more":[]}`
	if string(b) != want {
		t.Errorf("encoded as %s, want %s", b, want)
	}
	if row.List != nil || row.Pointer.List != nil || row.Items[0].List != nil || row.Deep[0] != nil ||
		row.Map["a"].List != nil || row.More != nil {
		t.Errorf("it was changed: %+v", row)
	}
	if b, err := api.EncodeJSON([]string(nil)); string(b) != "[]" {
		t.Errorf("a nil list is encoded as %s, %v", b, err)
	}
}
