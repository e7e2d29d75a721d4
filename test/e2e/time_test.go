package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// allReady is the line of providers/infrastructure-docker/nodeimage/by-hand.sh with the time until all Nodes are ready, in seconds.
var allReady = regexp.MustCompile(`(?m)^ *([0-9.]+) s  all Nodes are Ready$`)

// TestTime compares the time from the creation of a Cluster with one control plane machine and one worker until all Nodes are
// ready with that of docker and kubeadm by hand, in the same images.
func TestTime(t *testing.T) {
	testenv.Soak(t)
	w := shared.World(t)
	out, err := exec.CommandContext(t.Context(), filepath.Join(w.Tools.Root, "providers", "infrastructure-docker", "nodeimage", "by-hand.sh"), newer).CombinedOutput()
	found := allReady.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("providers/infrastructure-docker/nodeimage/by-hand.sh: %v\n%s", err, out)
	}
	byHand, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	template := journey.Template{
		Cluster: filepath.Join(w.Tools.Root, "providers", "infrastructure-docker", "config", "templates", "cluster-template-development.yaml"),
		Class:   filepath.Join(w.Tools.Root, "providers", "infrastructure-docker", "config", "templates", "clusterclass-quick-start.yaml"),
	}
	w.Class(template)
	cluster := w.Generated(template, "time", newer, 1, 1)
	began := time.Now()
	c := subject(t, w, cluster)
	network(t, c)
	initialized := time.Since(began)
	c.Eventually("all Nodes are ready", func(p *journey.Snapshot) error {
		if n := len(p.Machines.Items); n != 2 {
			return fmt.Errorf("%d Machines, want 2", n)
		}
		return c.WorkloadMatches(p)
	})
	took := time.Since(began)
	t.Logf("by hand: %.1f s; Cluster API: %.1f s, %+.0f %%; control plane initialized and pod network applied after %.1f s\nby hand, step by step:\n%s",
		byHand, took.Seconds(), 100*(took.Seconds()/byHand-1), initialized.Seconds(), out)
	for _, m := range c.Snapshot().Machines.Items {
		t.Logf("Machine %s after %s", m.Name, transitions(t, c, &m, began))
	}
	gone(t, c)
}

// transitions returns when the conditions of a Machine and its DockerMachine became true, in whole seconds.
func transitions(t *testing.T, c *journey.Subject, m *clusterv1.Machine, began time.Time) string {
	t.Helper()
	infra := &dockerv1.DockerMachine{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}, infra); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%.0f s: created", m.CreationTimestamp.Sub(began).Seconds())
	for _, o := range []journey.Conditioned{m, infra} {
		for _, found := range o.GetConditions() {
			text += fmt.Sprintf(", %.0f s: %s", found.LastTransitionTime.Sub(began).Seconds(), found.Type)
		}
	}
	return text
}
