package attestation_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/program"
)

func TestOf(t *testing.T) {
	build := attestation.Build{
		Target: "images", Version: "v2.0.0", Releases: "https://github.com/acme/x/releases", Toolchain: "go1.26.0", Platforms: []program.Platform{{OS: "linux", Arch: "amd64"}},
		Source: program.Source{Commit: "abc", Modified: true, Time: time.Unix(5, 0)}, Builder: "https://example.org/ci",
	}
	got, err := attestation.NewStatement(map[string]string{"b": "02", "a": "01"}, attestation.SLSA, build.Predicate())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
		"_type": "https://in-toto.io/Statement/v1",
		"subject": [{"name": "a", "digest": {"sha256": "01"}}, {"name": "b", "digest": {"sha256": "02"}}],
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": {
			"buildDefinition": {
				"buildType": "https://sigs.k8s.io/cluster-api/build/make@v1",
				"externalParameters": {"target": "images", "version": "v2.0.0", "releases": "https://github.com/acme/x/releases", "platforms": ["linux/amd64"], "sourceDateEpoch": 5},
				"internalParameters": {"toolchain": "go1.26.0"},
				"resolvedDependencies": [{
					"uri": "pkg:golang/sigs.k8s.io/cluster-api@v2.0.0", "digest": {"gitCommit": "abc"}, "annotations": {"modified": true}
				}]
			},
			"runDetails": {"builder": {"id": "https://example.org/ci"}}
		}
	}`
	var gotValue, wantValue any
	if err := json.Unmarshal(got, &gotValue); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wantValue); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Error(diff)
	}
}
