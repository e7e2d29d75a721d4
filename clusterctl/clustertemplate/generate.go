package clustertemplate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/template"
)

// classTimeout bounds the lookup of a ClusterClass in the management cluster, which is optional.
const classTimeout = 5 * time.Second

// FieldManager is the field manager for server-side apply of generated objects.
const FieldManager = "clusterctl"

// Generator generates the YAML of clusters.
type Generator struct {
	IO         *iostreams.Streams
	Catalog    *catalog.Catalog
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
}

// Template is a parsed template, before variables are replaced.
type Template struct {
	tmpl *template.Template
	// release is searched for ClusterClasses; nil unless the template is from a repository.
	release *catalog.Release
}

// Variables returns the template's variables, sorted by name.
func (t *Template) Variables() []template.Variable {
	return t.tmpl.Variables()
}

// Template finds and parses the template of a source.
func (g *Generator) Template(ctx context.Context, s Source) (*Template, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var raw []byte
	var release *catalog.Release
	var err error
	switch {
	case s.Location != "":
		raw, err = Read(ctx, s.Location, g.IO.In, g.Catalog.Store)
	case s.ConfigMap != "":
		raw, err = g.fromConfigMap(ctx, s)
	default:
		raw, release, err = g.fromRepository(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	tmpl, err := template.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("invalid cluster template: %w", err)
	}
	return &Template{tmpl: tmpl, release: release}, nil
}

// Objects returns the objects of the requested cluster, preceded by its ClusterClass if that is missing.
func (g *Generator) Objects(ctx context.Context, r Request) ([]unstructured.Unstructured, error) {
	namespace, err := g.namespace(r)
	if err != nil {
		return nil, err
	}
	// Validate the request before anything is downloaded.
	values, err := r.variables(g.Catalog.Config, namespace)
	if err != nil {
		return nil, err
	}
	t, err := g.Template(ctx, r.Source)
	if err != nil {
		return nil, err
	}
	conf := g.Catalog.Config.With(values)
	objects, err := render(t.tmpl, conf, namespace)
	if err != nil {
		return nil, fmt.Errorf("cannot process the cluster template: %w", err)
	}
	if t.release == nil {
		return objects, nil
	}
	classes, err := g.classes(ctx, t.release, conf, namespace, objects)
	return append(classes, objects...), err
}

func (g *Generator) namespace(r Request) (string, error) {
	if r.TargetNamespace != "" {
		return r.TargetNamespace, nil
	}
	namespace, err := g.Kubeconfig.Namespace()
	if errors.Is(err, management.ErrNoKubeconfig) && g.Kubeconfig.Path == "" {
		return "default", nil
	}
	return namespace, err
}

func render(t *template.Template, conf *config.Config, namespace string) ([]unstructured.Unstructured, error) {
	raw, err := t.Execute(conf.Variable)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.ParseTemplate(raw)
	if err != nil {
		return nil, err
	}
	manifest.SetNamespace(objects, namespace)
	return objects, nil
}

// classes returns the objects of required ClusterClasses that the management cluster does not have.
func (g *Generator) classes(
	ctx context.Context, release *catalog.Release, conf *config.Config, namespace string, objects []unstructured.Unstructured,
) ([]unstructured.Unstructured, error) {
	names := missingClasses(objects)
	if len(names) == 0 {
		return nil, nil
	}
	cluster, err := g.optionalCluster(ctx)
	if err != nil {
		return nil, err
	}
	var classes []unstructured.Unstructured
	for _, name := range names {
		if cluster != nil {
			found, err := exists(ctx, cluster.Client, classObject(namespace, name))
			if err != nil {
				return nil, fmt.Errorf("cannot get ClusterClass %s/%s: %w", namespace, name, err)
			}
			if found {
				continue
			}
		}
		class, err := loadClass(ctx, release, conf, namespace, name)
		if err != nil {
			return nil, err
		}
		if err := checkOverwritten(ctx, cluster, class, name); err != nil {
			return nil, err
		}
		classes = append(classes, class...)
	}
	return classes, nil
}

// missingClasses returns the sorted names of classes that Clusters in objects use and that are not in objects. Classes in other namespaces
// are not part of what is generated.
func missingClasses(objects []unstructured.Unstructured) []string {
	var used, present []string
	for _, o := range objects {
		if o.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
			continue
		}
		switch o.GetKind() {
		case "Cluster":
			if class, _ := tree.Class(&o); class.Name != "" && class.Namespace == o.GetNamespace() {
				used = append(used, class.Name)
			}
		case "ClusterClass":
			present = append(present, o.GetName())
		}
	}
	slices.Sort(used)
	return slices.DeleteFunc(slices.Compact(used), func(name string) bool { return slices.Contains(present, name) })
}

func loadClass(
	ctx context.Context, release *catalog.Release, conf *config.Config, namespace, name string,
) ([]unstructured.Unstructured, error) {
	file := "clusterclass-" + name + ".yaml"
	raw, err := release.Read(ctx, file)
	if errors.Is(err, repository.ErrNotFound) {
		return nil, fmt.Errorf("the cluster template uses ClusterClass %s, "+
			"which exists neither in namespace %s of the management cluster nor in the repository of %s %s (as %s): create it first",
			name, namespace, release.Provider.ManifestLabel(), release.Version, file)
	}
	if err != nil {
		return nil, err
	}
	tmpl, err := template.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("invalid %s: %w", file, err)
	}
	class, err := render(tmpl, conf, namespace)
	if err != nil {
		return nil, fmt.Errorf("invalid %s: %w", file, err)
	}
	return class, nil
}

// checkOverwritten returns an error if existing templates of a missing class would be overwritten. Templates that clusterctl
// itself applied are from an interrupted run, which this one continues.
func checkOverwritten(ctx context.Context, cluster *management.Cluster, class []unstructured.Unstructured, name string) error {
	if cluster == nil {
		return nil
	}
	for i := range class {
		part := class[i].DeepCopy()
		found, err := exists(ctx, cluster.Client, part)
		if err != nil {
			return fmt.Errorf("cannot get %s: %w", manifest.Describe(&class[i]), err)
		}
		if found && !Applied(part) {
			return fmt.Errorf("ClusterClass %s does not exist, but its template %s does: delete the template, or create the ClusterClass yourself",
				name, manifest.Describe(&class[i]))
		}
	}
	return nil
}

// Applied reports whether an object in a cluster was applied as FieldManager.
func Applied(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}

// optionalCluster returns the management cluster, or nil if there is none.
func (g *Generator) optionalCluster(ctx context.Context) (*management.Cluster, error) {
	cluster, err := g.Connect(g.Kubeconfig)
	if errors.Is(err, management.ErrNoKubeconfig) && g.Kubeconfig.Path == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, classTimeout)
	defer cancel()
	if err := cluster.CheckContract(ctx); err != nil {
		g.IO.Logf(1, "Not checking the management cluster for ClusterClasses: %v", err)
		return nil, nil
	}
	return cluster, nil
}

func classObject(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(clusterv1beta1.GroupVersion.String())
	o.SetKind("ClusterClass")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
