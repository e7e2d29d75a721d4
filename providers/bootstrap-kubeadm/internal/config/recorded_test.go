package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestRecordedReports: the conditions of every KubeadmConfig in eight states of a cluster are those that Cluster API v1.14.0 wrote.
//
// Configs without a status are not compared: v1.14.0 had not reconciled them yet.
func TestRecordedReports(t *testing.T) {
	root := os.Getenv("CAPI_FACTS_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "facts")
	}
	paths, err := filepath.Glob(filepath.Join(root, "data", "recorded", "v1.14.0", "*.bootstrap.v1beta2.json"))
	if err != nil || len(paths) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	registry, compared := conversion.New(nil), 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		testenv.Must(t, err)
		var recorded []bootstrapv1.KubeadmConfig
		testenv.Must(t, json.Unmarshal(content, &recorded))
		for i := range recorded {
			want := recorded[i].Status.Conditions
			if recorded[i].Kind != kubeadmConfigKind || len(want) == 0 {
				continue
			}
			config := &bootstrapv1.KubeadmConfig{}
			testenv.Must(t, registry.Convert(t.Context(), &recorded[i], config))
			got := sorted(reports(&scope{config: config}))
			if diff := cmp.Diff(bare(want), got); diff != "" {
				t.Errorf("%s, %s: -recorded +reported:\n%s", filepath.Base(path), config.Name, diff)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

func sorted(conditions []metav1.Condition) []metav1.Condition {
	report.Sort(conditions)
	return conditions
}

// bare returns conditions without what the Runner adds.
func bare(conditions []metav1.Condition) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range conditions {
		if c.Type != clusterv1.PausedCondition {
			all = append(all, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return all
}
