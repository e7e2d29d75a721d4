package bootstrap

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// Paths of files in Ignition documents of the kubeadm bootstrap provider.
const (
	ignitionConfigPath = "/etc/kubeadm.yml"
	ignitionScriptPath = "/etc/kubeadm.sh"
)

// initLine is the line of the script by which a machine initializes a control plane; others have "kubeadm join".
var initLine = regexp.MustCompile(`(?m)^kubeadm init( |$)`)

// readIgnition reads the files of an Ignition document. As in Ignition, the last file of a path is written. Files from
// elsewhere, or for another file system, are not read.
func readIgnition(value []byte) Data {
	var document struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
		Storage struct {
			Files []struct {
				Filesystem string `json:"filesystem"`
				Path       string `json:"path"`
				Append     bool   `json:"append"`
				Contents   struct {
					Source      string `json:"source"`
					Compression string `json:"compression"`
				} `json:"contents"`
			} `json:"files"`
		} `json:"storage"`
	}
	if err := json.Unmarshal(value, &document); err != nil || document.Ignition.Version == "" {
		return Data{Problem: "Ignition cannot parse the bootstrap data: it is no Ignition document"} // The error may quote a secret.
	}
	files := map[string]string{}
	for _, f := range document.Storage.Files {
		if f.Append || f.Contents.Compression != "" || f.Filesystem != "" && f.Filesystem != "root" {
			continue
		}
		if content, ok := decodeURL(f.Contents.Source); ok {
			files[f.Path] = content
		} else {
			delete(files, f.Path)
		}
	}
	text, ok := files[ignitionConfigPath]
	if !ok {
		return Data{}
	}
	return fromFiles(files, text, initLine.MatchString(files[ignitionScriptPath]))
}

// decodeURL returns the content of a data URL. (The common library for these starts goroutines that never end for some inputs.)
func decodeURL(source string) (string, bool) {
	kind, data, ok := strings.Cut(source, ",")
	if !ok || !strings.HasPrefix(kind, "data:") {
		return "", source == "" // A file without a source is empty.
	}
	if strings.HasSuffix(kind, ";base64") {
		content, err := base64.StdEncoding.DecodeString(data)
		return string(content), err == nil
	}
	content, err := url.PathUnescape(data)
	return content, err == nil
}
