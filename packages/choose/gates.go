package choose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/template"
)

const (
	gatesFlag = "--feature-gates"
	// gatesTimeout is how long init, when its plan is complete, waits for repositories with feature gates that it does not change.
	gatesTimeout = time.Second
)

// gates are feature gates of Deployments. A value is that of the flag, or, in components with variables, an expression.
type gates map[gate]string

type gate struct{ deployment, container, name string }

// gatesOf returns the feature gates of the Deployments among objects.
func gatesOf(objects []unstructured.Unstructured) gates {
	found := gates{}
	for i := range objects {
		if objects[i].GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(objects[i].Object, "spec", "template", "spec", "containers")
		for _, item := range containers {
			container, ok := item.(map[string]any)
			if !ok {
				continue
			}
			name, _, _ := unstructured.NestedString(container, "name")
			for _, field := range []string{"command", "args"} {
				list, _, _ := unstructured.NestedStringSlice(container, field)
				for _, text := range flagValues(list) {
					for pair := range strings.SplitSeq(text, ",") {
						if key, value, ok := strings.Cut(pair, "="); ok {
							found[gate{objects[i].GetName(), name, strings.TrimSpace(key)}] = strings.TrimSpace(value)
						}
					}
				}
			}
		}
	}
	return found
}

// flagValues returns the values of the flag of feature gates, in both forms.
func flagValues(args []string) []string {
	var values []string
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, gatesFlag+"="); ok {
			values = append(values, value)
		} else if arg == gatesFlag && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}

// variableOf returns the only variable of an expression, and the expression's value without it; ok is false for others.
func variableOf(expression string) (name, value string, ok bool) {
	t, err := template.Parse([]byte(expression))
	if err != nil || len(t.Variables()) != 1 || !strings.HasPrefix(expression, "${") {
		return "", "", false
	}
	out, err := t.Execute(func(string) (string, bool) { return "", false })
	return t.Variables()[0].Name, string(out), err == nil
}

// lost is a feature gate that an upgrade would change only because a variable is not set.
type lost struct {
	gate
	variable, have, next string
}

// lostGates returns the gates that differ from their default in the new release, without their variable being set. expressions are those
// of the new release.
func lostGates(have, expressions gates, isSet func(variable string) bool) []lost {
	var list []lost
	for _, g := range sortedGates(expressions) {
		variable, next, ok := variableOf(expressions[g])
		if current, exists := have[g]; ok && exists && current != next && !isSet(variable) {
			list = append(list, lost{g, variable, current, next})
		}
	}
	return list
}

func sortedGates(g gates) []gate {
	return slices.SortedFunc(maps.Keys(g), func(a, b gate) int {
		return strings.Compare(a.deployment+" "+a.container+" "+a.name, b.deployment+" "+b.container+" "+b.name)
	})
}

// gateKeeper keeps the feature gates of users in upgrades.
type gateKeeper struct {
	catalog *catalog.Catalog
}

func (k *gateKeeper) isSet(variable string) bool {
	value, ok := k.catalog.Config.Variable(variable)
	return ok && value != ""
}

// expressions returns the feature gates of a release, with variables.
func (k *gateKeeper) expressions(ctx context.Context, p *clusterctlv1.Provider, version string) (gates, error) {
	release, err := k.catalog.Release(ctx, p.GetProviderType(), packages.Ref{Name: p.ProviderName, Version: version})
	if err != nil {
		return nil, err
	}
	raw, err := k.catalog.Components(ctx, release, catalog.Options{TargetNamespace: p.Namespace, Raw: true})
	if err != nil {
		return nil, err
	}
	return gatesOf(raw.Objects), nil
}

// keep returns the components of the new version, with the feature gates that users have set by variables that are not set now. A gate
// that has the default of the installed version gets the new one. What was kept is in notes, and what is not, because the
// installed version can no longer be read, in warnings.
func (k *gateKeeper) keep(
	ctx context.Context, w Wanted, c *components.Components, present []unstructured.Unstructured,
) (kept *components.Components, notes, warnings []string, err error) {
	next, err := k.expressions(ctx, &w.Installed, w.Version)
	if err != nil {
		return c, nil, nil, nil // Components whose variables are not replaced may not be valid YAML.
	}
	missing := lostGates(gatesOf(present), next, k.isSet)
	if len(missing) == 0 {
		return c, nil, nil, nil
	}
	before, unreadable := k.expressions(ctx, &w.Installed, w.Installed.Version)
	values := map[string]string{}
	for _, m := range missing {
		_, was, known := variableOf(before[m.gate])
		switch {
		case known && was == m.have: // The default has changed.
		case unreadable != nil:
			warnings = append(warnings, fmt.Sprintf("feature gate %s of %s changes from %s to %s, because %s is not set: to keep it, set %s=%s",
				m.name, w.Installed.Name, m.have, m.next, m.variable, m.variable, m.have))
		default:
			values[m.variable] = m.have
			notes = append(notes, fmt.Sprintf("Keeping feature gate %s=%s of %s; to change it, set %s",
				m.name, m.have, w.Installed.Name, m.variable))
		}
	}
	if len(values) == 0 {
		return c, nil, warnings, nil
	}
	with := &catalog.Catalog{Config: k.catalog.Config.With(values), Store: k.catalog.Store}
	release, err := with.Release(ctx, w.Installed.GetProviderType(), packages.Ref{Name: w.Installed.ProviderName, Version: w.Version})
	if err != nil {
		return nil, nil, nil, err
	}
	kept, err = with.Components(ctx, release, catalog.Options{TargetNamespace: w.Installed.Namespace})
	return kept, notes, warnings, err
}

// unapplied returns the feature gates of an installed provider that differ from what variables demand now: init does not change what is
// installed. What cannot be read is left out.
func (k *gateKeeper) unapplied(ctx context.Context, c client.Reader, p *clusterctlv1.Provider) []string {
	deployments := &unstructured.UnstructuredList{}
	deployments.SetAPIVersion("apps/v1")
	deployments.SetKind("DeploymentList")
	err := c.List(ctx, deployments, client.InNamespace(p.Namespace), client.MatchingLabels{clusterv1.ProviderNameLabel: p.ManifestLabel()})
	if err != nil {
		return nil
	}
	have := gatesOf(deployments.Items)
	if len(have) == 0 {
		return nil
	}
	expressions, err := k.expressions(ctx, p, p.Version)
	if err != nil {
		return nil
	}
	var list []string
	for _, g := range sortedGates(expressions) {
		variable, _, ok := variableOf(expressions[g])
		current, exists := have[g]
		if value, _ := k.catalog.Config.Variable(variable); ok && exists && k.isSet(variable) && value != current {
			list = append(list, fmt.Sprintf("%s is %s, but feature gate %s of %s stays %s, because init does not change installed providers: "+
				"run `clusterctl upgrade apply --%s %s:%s` with that variable", variable, value, g.name, p.Name, current,
				packages.Word(p.GetProviderType()), p.ProviderName, p.Version))
		}
	}
	return list
}

// lookUpGates starts to look for feature gates of installed providers that the variables of this run do not change. The function that it
// returns warns about them: about those that are found until then, or a moment later, because nothing else depends on their repositories.
func (p *InstallPlanner) lookUpGates(ctx context.Context, installed inventory.Inventory) (warn func()) {
	type result struct {
		provider int
		texts    []string
	}
	ctx = repository.Once(ctx)
	keeper := &gateKeeper{p.Catalog}
	results := make(chan result, len(installed))
	for i := range installed {
		go func() { results <- result{i, keeper.unapplied(ctx, p.Client, &installed[i])} }()
	}
	return func() {
		timeout := time.After(gatesTimeout)
		found := make([][]string, len(installed))
		for range installed {
			select {
			case r := <-results:
				found[r.provider] = r.texts
				continue
			case <-timeout:
			}
			break
		}
		for _, text := range slices.Concat(found...) {
			p.Warn(errors.New(text))
		}
	}
}
