package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// nameLabel is the label that selects a metric by its name.
const nameLabel = "__name__"

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alerts returns the alerts of a release.
func alerts(t *testing.T) []rule {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(filesOf(root), alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	object := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}{}
	if err := yaml.UnmarshalStrict(raw, &object); err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" {
		t.Errorf("it is a %s of %s", object.Kind, object.APIVersion)
	}
	var all []rule
	for _, g := range object.Spec.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("there are %d rules", len(all))
	}
	return all
}

// selectors returns the selectors in an expression, which must be valid.
func selectors(t *testing.T, where, expr string) []*parser.VectorSelector {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %s: %v", where, expr, err)
		return nil
	}
	var found []*parser.VectorSelector
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			found = append(found, s)
		}
		return nil
	})
	if len(found) == 0 {
		t.Errorf("%s: %s reads no metric", where, expr)
	}
	return found
}

// objectMetrics returns the labels of the metrics that kube-state-metrics serves with this release's configuration, by name.
func objectMetrics(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(filesOf(root), stateMetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	type source struct {
		LabelsFromPath map[string][]string `json:"labelsFromPath"`
		LabelName      string              `json:"labelName"`
	}
	config := struct {
		Spec struct {
			Resources []struct {
				MetricNamePrefix string              `json:"metricNamePrefix"`
				LabelsFromPath   map[string][]string `json:"labelsFromPath"`
				Metrics          []struct {
					Name string `json:"name"`
					Each struct {
						Gauge, Info, StateSet *source
					} `json:"each"`
				} `json:"metrics"`
			} `json:"resources"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, r := range config.Spec.Resources {
		for _, m := range r.Metrics {
			names := slices.Collect(maps.Keys(r.LabelsFromPath))
			for _, s := range []*source{m.Each.Gauge, m.Each.Info, m.Each.StateSet} {
				if s != nil {
					names = append(append(names, slices.Collect(maps.Keys(s.LabelsFromPath))...), s.LabelName)
				}
			}
			all[r.MetricNamePrefix+"_"+m.Name] = names
		}
	}
	return all
}

// checkSelectors checks the metrics that an expression reads: those of objects against the configuration of kube-state-metrics, with
// their labels. Those of managers have the job of the documented scrape configuration; test/permission compares their names with what
// managers serve.
func checkSelectors(t *testing.T, where string, found []*parser.VectorSelector, objects map[string][]string) {
	t.Helper()
	for _, s := range found {
		has, isObject := objects[s.Name]
		job := ""
		for _, m := range s.LabelMatchers {
			if m.Name == "job" {
				job = m.Value
			} else if isObject && m.Name != nameLabel && !slices.Contains(has, m.Name) {
				t.Errorf("%s: %s has no label %s, only %v", where, s.Name, m.Name, has)
			}
		}
		if isObject == (job == "cluster-api") {
			t.Errorf("%s: %s is a metric of objects: %t, and has the job %q", where, s.Name, isObject, job)
		}
	}
}

func TestAlerts(t *testing.T) {
	objects, seen := objectMetrics(t), map[string]bool{}
	variable := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, r := range alerts(t) {
		if seen[r.Alert] || !strings.HasPrefix(r.Alert, "ClusterAPI") {
			t.Errorf("the name %q occurs twice, or is not one of ours", r.Alert)
		}
		seen[r.Alert] = true
		found := selectors(t, r.Alert, r.Expr)
		checkSelectors(t, r.Alert, found, objects)
		if r.For != "" {
			selectors(t, r.Alert+" waits", "up["+r.For+"]")
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: labels %v, annotations %v", r.Alert, r.Labels, r.Annotations)
		}
		for _, match := range variable.FindAllStringSubmatch(fmt.Sprint(r.Annotations), -1) {
			if !strings.Contains(r.Expr, match[1]) && !hasLabel(found, match[1], objects) {
				t.Errorf("%s: its annotations have the label %s, which its series lack", r.Alert, match[1])
			}
		}
	}
}

// hasLabel reports whether the series of a selector have a label without an aggregation: those of objects as configured, those of scrapes
// also that of the Pod.
func hasLabel(found []*parser.VectorSelector, label string, objects map[string][]string) bool {
	return slices.ContainsFunc(found, func(s *parser.VectorSelector) bool {
		return slices.Contains(objects[s.Name], label) || s.Name == "up" && slices.Contains([]string{"namespace", "pod"}, label)
	})
}

func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(filesOf(root), dashboardFile))
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ X, Y, W, H int }
	dashboard := struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos place
			Targets []struct{ RefID, Expr string }
		}
	}{}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) < 10 {
		t.Fatalf("there are %d panels", len(dashboard.Panels))
	}
	objects, taken, ids := objectMetrics(t), map[[2]int]string{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || len(p.Targets) == 0 || ids[p.ID] {
			t.Errorf("panel %d, %q, has %d targets, or its ID is taken", p.ID, p.Title, len(p.Targets))
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q and %q overlap, or exceed the width", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			checkSelectors(t, p.Title, selectors(t, p.Title, expr), objects)
		}
	}
}
