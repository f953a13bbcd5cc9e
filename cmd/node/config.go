package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 256 << 10

// notConfigured are the flags that can not be set by a file or a variable.
var notConfigured = []string{"config", "help", "faults"}

// configure sets those flags of cmd that were not given, from a YAML file and from the
// environment. A key of the file is a flag's name. A variable is SELVAGE_ and the flag's
// name in capitals with _ for -. Flags take precedence over variables, variables over
// the file. Unknown keys and values of a wrong type are errors; unknown variables are
// ignored. All problems are reported at once.
func configure(cmd *cobra.Command, path string) error {
	flags := map[string]*pflag.Flag{}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notConfigured, f.Name) {
			flags[f.Name] = f
		}
	})
	const delim = "\x00" // keys are not split: labels may have dots
	k := koanf.New(delim)
	if path != "" {
		values, err := readConfig(path)
		if err != nil {
			return cli.Misuse(err)
		}
		var errs []error
		for _, key := range slices.Sorted(maps.Keys(values)) {
			f, ok := flags[key]
			if !ok {
				errs = append(errs, fmt.Errorf("%s: unknown key %q; there are %s", path, key,
					strings.Join(slices.Sorted(maps.Keys(flags)), ", ")))
				continue
			}
			if _, err := textsOf(f, values[key]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", path, key, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return cli.Misuse(err)
		}
		if err := k.Load(confmap.Provider(values, ""), nil); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	from := map[string]string{} // variable by key
	err := k.Load(env.Provider(delim, env.Opt{Prefix: "SELVAGE_", TransformFunc: func(name, value string) (string, any) {
		key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "SELVAGE_")), "_", "-")
		f, ok := flags[key]
		if !ok || value == "" {
			return "", nil
		}
		from[key] = name
		if many(f) {
			return key, strings.Split(value, ",")
		}
		return key, value
	}}), nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		f := flags[name]
		v := k.Get(name)
		if f.Changed || v == nil {
			continue
		}
		source := path + ": " + name
		var list []string
		if variable, ok := from[name]; ok {
			source = variable
			if list, ok = v.([]string); !ok {
				list = []string{fmt.Sprint(v)}
			}
		} else if list, err = textsOf(f, v); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, err))
		}
		for _, text := range list {
			if err := cmd.Flags().Set(name, text); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", source, errors.Unwrap(err)))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return cli.Misuse(err)
	}
	return nil
}

func readConfig(path string) (map[string]any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxConfig {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxConfig)
	}
	values, err := yaml.Parser().Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

// many reports whether a flag may be given more than once.
func many(f *pflag.Flag) bool {
	switch f.Value.Type() {
	case "stringArray", "stringSlice", "stringToString", "func":
		return true
	}
	return false
}

// textsOf returns the value of a configuration file as arguments of its flag, one for
// each time that the flag is given.
func textsOf(f *pflag.Flag, v any) ([]string, error) {
	one := func(v any) (string, bool) {
		switch v := v.(type) {
		case string:
			return v, true
		case int, int64, uint64:
			return fmt.Sprint(v), false
		case bool:
			return fmt.Sprint(v), false
		}
		return "", false
	}
	wrong := func(want string) ([]string, error) {
		return nil, fmt.Errorf("expected %s, found %s", want, kindOf(v))
	}
	switch f.Value.Type() {
	case "int", "int64", "uint", "uint64":
		switch v.(type) {
		case int, int64, uint64:
			text, _ := one(v)
			return []string{text}, nil
		}
		return wrong("a whole number")
	case "bool":
		if b, ok := v.(bool); ok {
			return []string{fmt.Sprint(b)}, nil
		}
		return wrong("true or false")
	case "stringToString":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong("keys and values")
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(m)) {
			text, _ := one(m[key])
			if text == "" {
				return nil, fmt.Errorf("expected a text for %q, found %s", key, kindOf(m[key]))
			}
			out = append(out, key+"="+text)
		}
		return out, nil
	case "stringArray", "stringSlice", "func":
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		var out []string
		for _, item := range list {
			text, ok := one(item)
			if !ok {
				return wrong("a list of texts")
			}
			out = append(out, text)
		}
		return out, nil
	}
	if text, ok := one(v); ok {
		return []string{text}, nil
	}
	return wrong("a text")
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "keys and values"
	case []any:
		return "a list"
	case bool:
		return "true or false"
	case string:
		return "a text"
	}
	return fmt.Sprintf("the number %v", v)
}
