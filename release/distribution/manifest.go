package distribution

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the template of the formula
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// Download is an archive of a release.
type Download struct {
	// OS and Arch are named as Go does.
	OS, Arch string
	URL      string
	// Checksum is SHA-256, in hexadecimal.
	Checksum string
	// Program is the path of the program in the archive.
	Program string
}

// NewDownload returns the Download of an archive at an URL.
func NewDownload(goos, arch, url string, archive []byte, program string) Download {
	sum := sha256.Sum256(archive)
	return Download{OS: goos, Arch: arch, URL: url, Checksum: hex.EncodeToString(sum[:]), Program: program}
}

// Program is what Homebrew and Krew know of a program.
type Program struct {
	Name, Summary, Description, Homepage string
	// Version of the release, with a leading v.
	Version   string
	Downloads []Download
}

//go:embed formula.rb.tmpl
var formula string

// brewNames are the names of platforms in a formula, which cannot have others.
var brewNames = map[string]string{"darwin": "macos", "linux": "linux", "amd64": "intel", "arm64": "arm"}

// Formula returns a formula of Homebrew.
func (p Program) Formula() ([]byte, error) {
	type block struct {
		System    string
		Downloads []Download
	}
	var blocks []block
	for _, goos := range []string{"darwin", "linux"} {
		b := block{System: brewNames[goos]}
		for _, d := range p.Downloads {
			if d.OS == goos && brewNames[d.Arch] != "" {
				b.Downloads = append(b.Downloads, Download{Arch: brewNames[d.Arch], URL: d.URL, Checksum: d.Checksum, Program: d.Program})
			}
		}
		slices.SortFunc(b.Downloads, func(a, c Download) int { return strings.Compare(a.Arch, c.Arch) })
		if len(b.Downloads) > 0 {
			blocks = append(blocks, b)
		}
	}
	t, err := template.New("formula").Parse(formula)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Class": strings.ToUpper(p.Name[:1]) + p.Name[1:], "Name": p.Name, "Summary": p.Summary, "Homepage": p.Homepage,
		"Version": strings.TrimPrefix(p.Version, "v"), "Blocks": blocks,
	})
	return out.Bytes(), err
}

// krewPlugin is the format of Krew's manifests: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// Krew returns the manifest of a plugin of kubectl, for the package manager Krew.
func (p Program) Krew() ([]byte, error) {
	if len(p.Downloads) == 0 {
		return nil, fmt.Errorf("the plugin %s has no platform", p.Name)
	}
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{Name: p.Name},
		Spec: krewSpec{Version: p.Version, Homepage: p.Homepage, ShortDescription: p.Summary, Description: p.Description},
	}
	for _, d := range p.Downloads {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{MatchLabels: map[string]string{"os": d.OS, "arch": d.Arch}}, URI: d.URL, SHA256: d.Checksum, Bin: d.Program,
		})
	}
	return yaml.Marshal(plugin)
}
