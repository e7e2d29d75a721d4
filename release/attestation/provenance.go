package attestation

import (
	"encoding/json"
	"maps"
	"slices"

	"sigs.k8s.io/cluster-api/release/program"
)

const (
	// StatementType is the type of statements.
	StatementType = "https://in-toto.io/Statement/v1"
	// PayloadType is the type of statements in envelopes.
	PayloadType = "application/vnd.in-toto+json"
	// BuildType names the build that docs/book/artifacts.md describes, and how to repeat it.
	BuildType = "https://sigs.k8s.io/cluster-api/build/make@v1"
	// SPDX is the type of a predicate that is an SPDX document.
	SPDX = "https://spdx.dev/Document"
	// SLSA is the type of a predicate that describes a build.
	SLSA = "https://slsa.dev/provenance/v1"
)

// Statement is a statement about artifacts.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

// Subject is an artifact.
type Subject struct {
	Name string `json:"name"`
	// Digest has digests in hexadecimal by algorithm.
	Digest map[string]string `json:"digest"`
}

// Build is what a build depends on.
type Build struct {
	// Target is the target of the Makefile.
	Target             string
	Version, Toolchain string
	// Releases is the address of the releases that the build belongs to.
	Releases  string
	Platforms []program.Platform
	Source    program.Source
	// Builder is the URI of the system that ran the build.
	Builder string
}

// NewStatement returns a statement with a predicate about artifacts by name, with their SHA-256 checksums in hexadecimal.
func NewStatement(checksums map[string]string, predicateType string, predicate any) ([]byte, error) {
	s := Statement{Type: StatementType, PredicateType: predicateType, Predicate: predicate}
	for _, name := range slices.Sorted(maps.Keys(checksums)) {
		s.Subject = append(s.Subject, Subject{Name: name, Digest: map[string]string{"sha256": checksums[name]}})
	}
	return json.Marshal(s)
}

// Predicate returns the predicate that describes a build, as JSON values. It has no times of the build, so that it is
// reproducible.
func (b Build) Predicate() map[string]any {
	var platforms []string
	for _, p := range b.Platforms {
		platforms = append(platforms, p.String())
	}
	checkout := map[string]any{"uri": "pkg:golang/sigs.k8s.io/cluster-api@" + b.Version}
	if b.Source.Commit != "" {
		checkout["digest"] = map[string]string{"gitCommit": b.Source.Commit}
	}
	if b.Source.Modified {
		// The commit alone does not reproduce the build.
		checkout["annotations"] = map[string]bool{"modified": true}
	}
	return map[string]any{
		"buildDefinition": map[string]any{
			"buildType": BuildType,
			"externalParameters": map[string]any{
				"target": b.Target, "version": b.Version, "releases": b.Releases, "platforms": platforms, "sourceDateEpoch": b.Source.Time.Unix(),
			},
			"internalParameters":   map[string]any{"toolchain": b.Toolchain},
			"resolvedDependencies": []any{checkout},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": b.Builder}},
	}
}
