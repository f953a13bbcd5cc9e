package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeYAML writes the output of -o json as YAML, with the members in their order.
func writeYAML(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	node, err := yamlOf(dec)
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return err
	}
	return enc.Close()
}

// yamlOf returns the next value of a JSON text.
func yamlOf(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, value string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}, nil
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		if token == '{' {
			node.Kind = yaml.MappingNode
		}
		for dec.More() { // in a mapping, a name and its value
			inner, err := yamlOf(dec)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, inner)
		}
		_, err := dec.Token() // the closing delimiter
		return node, err
	case bool:
		return scalar("!!bool", map[bool]string{true: "true", false: "false"}[token])
	case json.Number:
		if strings.ContainsAny(token.String(), ".eE") {
			return scalar("!!float", token.String())
		}
		return scalar("!!int", token.String())
	case string:
		return scalar("!!str", token)
	}
	return scalar("!!null", "null")
}
