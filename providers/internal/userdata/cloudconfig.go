package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/sdk/expansion"
)

const (
	cloudConfigHeader = "#cloud-config"
	defaultMode       = 0o644
)

// cloudFile is an entry of write_files.
type cloudFile struct {
	Path        string          `json:"path"`
	Content     json.RawMessage `json:"content"`
	Encoding    string          `json:"encoding"`
	Owner       string          `json:"owner"`
	Permissions json.RawMessage `json:"permissions"`
	Append      bool            `json:"append"`
	Source      json.RawMessage `json:"source"`
}

// readCloudConfig interprets a cloud-config. A template header is accepted, but templates are not rendered: the machines of our providers
// have no instance metadata.
func readCloudConfig(value []byte) (*Data, error) {
	if !isCloudConfig(string(value)) {
		return nil, &UnsupportedError{
			"the bootstrap data is not a cloud-config: its first line must be " + cloudConfigHeader + ", after an optional template header",
		}
	}
	if err := expansion.Check(value, maxData); err != nil {
		return nil, invalidYAML(err)
	}
	sections := map[string]json.RawMessage{}
	if err := yaml.Unmarshal(value, &sections); err != nil {
		return nil, invalidYAML(err)
	}
	d := &Data{}
	for name, section := range sections {
		var err error
		switch name {
		case "write_files":
			d.Files, err = cloudFiles(section)
		case "runcmd":
			d.Commands, err = cloudCommands(section)
		default:
			d.Ignored = append(d.Ignored, "cloud-init module "+shorten(name))
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// invalidYAML leaves out the text of parsers' errors, which may quote secrets.
func invalidYAML(err error) error {
	if tooBig, ok := errors.AsType[*expansion.TooBigError](err); ok {
		return fmt.Errorf("the bootstrap data is invalid: %w", tooBig)
	}
	return errors.New("the bootstrap data is not valid YAML")
}

func shorten(text string) string {
	return strconv.Quote(fmt.Sprintf("%.60s", text))
}

// isCloudConfig looks for the header in the first line, or after a template header.
func isCloudConfig(text string) bool {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		if line == cloudConfigHeader {
			return true
		}
		if line != "" && !strings.HasPrefix(line, "##") {
			return false
		}
	}
	return false
}

func cloudFiles(section json.RawMessage) ([]File, error) {
	var entries []cloudFile
	if err := json.Unmarshal(section, &entries); err != nil {
		return nil, errors.New("write_files in the bootstrap data is not a list of files")
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("write_files in the bootstrap data has more than %d files", maxEntries)
	}
	var out []File
	left := maxContent
	for _, e := range entries {
		f := File{Path: path.Clean(e.Path), Owner: e.Owner, Append: e.Append, External: len(e.Source) > 0 && string(e.Source) != "null"}
		var err error
		if f.Mode, err = cloudMode(e.Permissions); err != nil {
			return nil, fmt.Errorf("file %.200q: %w", e.Path, err)
		}
		if f.External {
			out = append(out, f)
			continue
		}
		if f.Content, err = cloudContent(e, left); err != nil {
			return nil, fmt.Errorf("file %.200q: %w", e.Path, err)
		}
		left -= len(f.Content)
		out = append(out, f)
	}
	return out, nil
}

// cloudMode returns the permissions: text is octal, and a number is what YAML made of it.
func cloudMode(raw json.RawMessage) (uint32, error) {
	text, isText := scalar(raw)
	if text == "" {
		return defaultMode, nil
	}
	base := 10
	if isText {
		base, text = 8, strings.TrimPrefix(text, "0o")
	}
	mode, err := strconv.ParseUint(text, base, 32)
	if err != nil {
		return 0, fmt.Errorf("invalid permissions %.20q: use an octal number in quotes", text)
	}
	return uint32(mode), nil
}

// scalar returns a JSON string, number or boolean as text, and whether it is a string.
func scalar(raw json.RawMessage) (text string, isText bool) {
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
		return "", false
	}
	return string(raw), false
}

func cloudContent(e cloudFile, limit int) ([]byte, error) {
	if len(e.Content) > 0 && (e.Content[0] == '{' || e.Content[0] == '[') {
		return nil, errors.New("the content is not a text")
	}
	text, _ := scalar(e.Content)
	content := []byte(text)
	zipped, encoded, err := cloudEncoding(e.Encoding)
	if err != nil {
		return nil, err
	}
	if encoded {
		if content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err != nil {
			return nil, errors.New("the content is not valid base64") // The error would quote it.
		}
	}
	if zipped {
		return unzip(content, limit)
	}
	return content, nil
}

// cloudEncoding interprets the encodings that cloud-init knows.
func cloudEncoding(encoding string) (zipped, encoded bool, err error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "text/plain":
		return false, false, nil
	case "gz", "gzip":
		return true, false, nil
	case "b64", "base64":
		return false, true, nil
	case "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
		return true, true, nil
	}
	return false, false, fmt.Errorf("encoding %.40q is not supported: use base64, gzip or gzip+base64", encoding)
}

// unzip decompresses at most limit bytes.
func unzip(content []byte, limit int) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, errors.New("the content is not valid gzip")
	}
	out, err := io.ReadAll(io.LimitReader(reader, int64(limit)+1))
	if err != nil {
		return nil, errors.New("the content is not valid gzip")
	}
	if len(out) > limit {
		return nil, fmt.Errorf("the files in the bootstrap data have more than %d bytes", maxContent)
	}
	return out, nil
}

func cloudCommands(section json.RawMessage) ([]Command, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(section, &entries); err != nil {
		return nil, errors.New("runcmd in the bootstrap data is not a list of commands")
	}
	var out []Command
	for i, raw := range entries {
		c := Command{Name: fmt.Sprintf("command %d of %d in runcmd", i+1, len(entries))}
		if string(raw) == "null" {
			continue // As in cloud-init.
		}
		var err error
		if raw[0] == '[' {
			c.Args, err = arguments(raw)
		} else {
			c.Shell, _ = scalar(raw)
		}
		if err != nil || len(c.Args) == 0 && strings.TrimSpace(c.Shell) == "" {
			return nil, fmt.Errorf("%s is neither text nor a list of texts", c.Name)
		}
		out = append(out, c)
	}
	return out, nil
}

func arguments(raw json.RawMessage) ([]string, error) {
	var words []json.RawMessage
	if err := json.Unmarshal(raw, &words); err != nil {
		return nil, err
	}
	var out []string
	for _, word := range words {
		if len(word) == 0 || word[0] == '{' || word[0] == '[' {
			return nil, errors.New("not a text")
		}
		text, _ := scalar(word)
		out = append(out, text)
	}
	return out, nil
}
