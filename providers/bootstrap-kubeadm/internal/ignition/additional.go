package ignition

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	clc "github.com/flatcar/container-linux-config-transpiler/config"
	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate/report"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// convert converts the user's Container Linux Config. Its warnings are errors if the config is strict.
func convert(spec bootstrapv1.ContainerLinuxConfig, at *field.Path) (types.Config, []string, field.ErrorList) {
	text := bytes.TrimSpace([]byte(spec.AdditionalConfig))
	at = at.Child("additionalConfig")
	if len(text) == 0 {
		return types.Config{}, nil, nil
	}
	if err := checkYAML(text); err != nil {
		return types.Config{}, nil, field.ErrorList{invalid(at, "%v", err)}
	}
	config, entries, err := transpile([]byte(spec.AdditionalConfig))
	if err != nil {
		return types.Config{}, nil, field.ErrorList{invalid(at, "%v", err)}
	}
	var warnings []string
	var all field.ErrorList
	for _, e := range entries {
		message := e.Message
		if e.Line != 0 {
			message = fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
		}
		switch {
		case e.Kind == report.EntryError:
			all = append(all, invalid(at, "%s", message))
		case e.Kind == report.EntryWarning && ptr.Deref(spec.Strict, false):
			all = append(all, invalid(at, "%s, which is an error because of strict", message))
		case e.Kind == report.EntryWarning:
			warnings = append(warnings, oneLine(at.String()+": "+message))
		}
	}
	return config, warnings, all
}

// checkYAML returns an error unless a text is one YAML document of limited size. The library reads the first one only.
func checkYAML(text []byte) error {
	if len(text) > corev1.MaxSecretSize {
		return fmt.Errorf("must be at most %d bytes", corev1.MaxSecretSize)
	}
	if err := expansion.Check(text, corev1.MaxSecretSize); err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("must be YAML: %w", err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New("must be one YAML document")
	}
	return checkURLs(&document)
}

// checkURLs returns an error if a data URL cannot be decoded. The library would reject it, too, but leak a goroutine that holds
// it: tenants could exhaust the memory of the process.
func checkURLs(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := resolved(n.Content[i]).Value, resolved(n.Content[i+1])
			if (key == "url" || key == "source") && !decodable(value.Value) {
				return fmt.Errorf("line %d, column %d: the data URL cannot be decoded", value.Line, value.Column)
			}
		}
	}
	for _, child := range n.Content {
		if err := checkURLs(child); err != nil {
			return err
		}
	}
	return nil
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Alias != nil {
		return n.Alias
	}
	return n
}

// dataKind matches what precedes the data of a data URL, without quoted or escaped parameters.
var dataKind = regexp.MustCompile(`^data:[A-Za-z0-9!#$&^_.+/;=-]*$`)

// decodable reports whether a URL is no data URL, or one that can be decoded.
func decodable(source string) bool {
	if !strings.HasPrefix(source, "data:") {
		return true
	}
	kind, data, _ := strings.Cut(source, ",")
	if !dataKind.MatchString(kind) {
		return false
	}
	if strings.HasSuffix(kind, ";base64") {
		_, err := base64.StdEncoding.DecodeString(data)
		return err == nil
	}
	_, err := url.PathUnescape(data)
	return err == nil
}

// transpile converts a Container Linux Config with the library, and returns its report. Configs with platform-specific
// variables are errors, because the platform is unknown, and so are those with files of this process.
func transpile(text []byte) (config types.Config, entries []report.Entry, err error) {
	defer func() { // The library panics on some aliases.
		if recover() != nil {
			config, entries, err = types.Config{}, nil, errors.New(
				"the conversion to Ignition failed: replace YAML aliases and merge keys by what they refer to")
		}
	}()
	parsed, tree, found := clc.Parse(text)
	found.Sort()
	if found.IsFatal() {
		return types.Config{}, found.Entries, nil
	}
	config, more := clc.Convert(parsed, "", tree)
	more.Sort()
	return config, append(found.Entries, more.Entries...), nil
}
