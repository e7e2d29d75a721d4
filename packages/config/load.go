package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/template"
	"sigs.k8s.io/cluster-api/sdk/version"
)

const (
	downloadTimeout = 30 * time.Second
	maxRedirects    = 10
)

// Options is where to look for the configuration.
type Options struct {
	// Path is a file, or an https or http URL; empty means the default locations.
	Path string
	// Local is the configuration of a repository that was built with the program; it lies under the user's, like the defaults. Empty
	// means that there is none.
	Local string
	// Env looks up environment variables.
	Env template.Lookup
	// HTTP downloads a configuration given as URL; nil means a client with a timeout of 30s.
	HTTP *http.Client
	// Warn, which may be nil, is called if the configuration is read although it can have been tampered with.
	Warn func(format string, args ...any)
}

// Load reads the configuration. A missing file in the default locations is not an error; errors name the file and the
// key.
func Load(ctx context.Context, o Options) (*Config, error) {
	c := Default(o.Env)
	if err := c.applyLocal(o); err != nil {
		return nil, err
	}
	source, raw, err := read(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cannot read the clusterctl configuration: %w", err)
	}
	if source == "" {
		return c, nil
	}
	c.Source = source
	parsed, err := parse(raw, path.Ext(source))
	if err == nil {
		c.OverridesFolder = overridesBeside(source, o)
		err = c.apply(parsed.file, parsed.values)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid clusterctl configuration %s: %w", source, err)
	}
	for _, problem := range parsed.ignored {
		if o.Warn != nil {
			o.Warn("clusterctl configuration %s: %s", source, problem)
		}
	}
	return c, nil
}

// applyLocal lays the configuration of the local repository over the defaults. Without it, clusterctl installs what is published.
func (c *Config) applyLocal(o Options) error {
	if o.Local == "" {
		return nil
	}
	raw, err := os.ReadFile(o.Local)
	if errors.Is(err, fs.ErrNotExist) {
		if o.Warn != nil && o.Path == "" {
			o.Warn("%s does not exist: this project's providers are read from %s; run `make release`", o.Local, version.Releases())
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the clusterctl configuration of the local repository: %w", err)
	}
	parsed, err := parse(raw, path.Ext(o.Local))
	if err == nil {
		err = c.apply(parsed.file, parsed.values)
	}
	if err != nil {
		return fmt.Errorf("invalid clusterctl configuration of the local repository, %s: %w", o.Local, err)
	}
	return nil
}

// overridesBeside returns the default folder of overrides: beside the file, if it was found in one of the usual places and has one,
// otherwise in Dir.
func overridesBeside(source string, o Options) string {
	if o.Path == "" {
		beside := filepath.Join(filepath.Dir(source), overridesName)
		if info, err := os.Stat(beside); err == nil && info.IsDir() {
			return beside
		}
	}
	return filepath.Join(Dir(o.Env), overridesName)
}

// read returns the contents of the configuration and their source, if there is one.
func read(ctx context.Context, o Options) (source string, raw []byte, err error) {
	switch {
	case strings.HasPrefix(o.Path, "https://"), strings.HasPrefix(o.Path, "http://"):
		raw, err = download(ctx, o)
		return o.Path, raw, err
	case o.Path != "":
		raw, err = os.ReadFile(o.Path)
		return o.Path, raw, err
	}
	for _, candidate := range usualPlaces(o.Env) {
		raw, err = os.ReadFile(candidate) // The user's own configuration.
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return candidate, raw, err
	}
	return "", nil, nil
}

func usualPlaces(env template.Lookup) []string {
	folders := []string{Dir(env)}
	if home, ok := env("HOME"); ok && home != "" {
		folders = append(folders, filepath.Join(home, ".cluster-api"))
	}
	var files []string
	for _, folder := range folders {
		for _, extension := range []string{"yaml", "yml", "json", "toml"} {
			files = append(files, filepath.Join(folder, "clusterctl."+extension))
		}
	}
	return files
}

func download(ctx context.Context, o Options) ([]byte, error) {
	client := http.Client{Timeout: downloadTimeout}
	if o.HTTP != nil {
		client = *o.HTTP
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if protected(via[0].URL) && !protected(r.URL) {
			return fmt.Errorf("refusing to follow a redirect to %s: it is not protected against tampering, other than %s", r.URL, via[0].URL)
		}
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.Path, nil)
	if err != nil {
		return nil, err
	}
	if !protected(req.URL) && o.Warn != nil {
		o.Warn("%s is read over plain HTTP: an attacker on the network can change what is installed; use https, or download it and pass the file",
			req.URL)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", o.Path, resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, packages.MaxConfiguration+1))
	if err == nil && len(raw) > packages.MaxConfiguration {
		return nil, fmt.Errorf("GET %s: the file is larger than %d MiB", o.Path, packages.MaxConfiguration>>20)
	}
	return raw, err
}

// protected reports whether a response cannot be changed on its way: it determines which code gets full permissions on the management
// cluster.
func protected(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// contents is what a file has.
type contents struct {
	file file
	// values are variables.
	values map[string]string
	// ignored describes what has no meaning.
	ignored []string
}

// parse splits a file into the keys with a meaning and variables.
func parse(raw []byte, extension string) (*contents, error) {
	asJSON, err := toJSON(raw, extension)
	if err != nil {
		return nil, err
	}
	var y yamlFile
	if extension != ".toml" && extension != ".json" { // In JSON, the last one of equal keys counts.
		if y, err = readYAML(raw); err != nil {
			return nil, err
		}
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(asJSON, &all); err != nil {
		return nil, errors.New("it must be a map of keys and values")
	}
	c := &contents{values: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := c.add(key, all[key], y); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add adds a key. Keys are case-insensitive. Of those that differ in case alone, the last in byte order wins: the lower-case one.
func (c *contents) add(key string, value json.RawMessage, y yamlFile) error {
	switch strings.ToLower(key) {
	case "providers":
		c.ignored = append(c.ignored, unknownKeys(key, value, "name", "type", "url")...)
		return into(key, value, &c.file.Providers)
	case "cert-manager":
		c.ignored = append(c.ignored, unknownKeys(key, value, "url", "version", "timeout")...)
		return into(key, value, &c.file.CertManager)
	case "images":
		c.ignored = append(c.ignored, unknownKeysOfEach(key, value, "repository", "tag")...)
		return into(key, value, &c.file.Images)
	case "overridesfolder":
		return into(key, value, &c.file.OverridesFolder)
	}
	text, ok := y.texts[key]
	if !ok {
		text, ok = scalar(value)
	}
	switch {
	case ok:
		c.values[variableName(key)] = text
	case string(value) != "null":
		c.ignored = append(c.ignored, key+" is ignored: it is neither a known key nor a variable, whose value is a text, number or boolean")
	}
	return nil
}

func toJSON(raw []byte, extension string) ([]byte, error) {
	if len(raw) > packages.MaxConfiguration {
		return nil, packages.TooLarge("it", len(raw), packages.MaxConfiguration)
	}
	if extension == ".toml" {
		var all map[string]any
		if err := toml.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
		return json.Marshal(all)
	}
	if err := packages.CheckYAML("not valid YAML", raw, packages.MaxConfiguration); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(raw)
	if string(asJSON) == "null" {
		return []byte("{}"), err
	}
	return asJSON, err
}

// into replaces the target by the value.
func into[T any](key string, value json.RawMessage, target *T) error {
	var decoded T
	err := json.Unmarshal(value, &decoded)
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrongType.Field != "" {
			key += "." + wrongType.Field
		}
		return fmt.Errorf("%s must be a %s, but is of type %s", key, shape(wrongType.Type.Kind()), wrongType.Value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	*target = decoded
	return nil
}

func shape(kind reflect.Kind) string {
	switch kind {
	case reflect.Slice:
		return "list"
	case reflect.String:
		return "string"
	default:
		return "map"
	}
}

// scalar returns the text of a scalar value. Numbers keep their JSON form.
func scalar(value json.RawMessage) (string, bool) {
	value = bytes.TrimSpace(value)
	var text string
	switch {
	case len(value) == 0, value[0] == '{', value[0] == '[', string(value) == "null":
		return "", false
	case value[0] == '"':
		if err := json.Unmarshal(value, &text); err != nil {
			return "", false
		}
		return text, true
	default:
		return string(value), true
	}
}
