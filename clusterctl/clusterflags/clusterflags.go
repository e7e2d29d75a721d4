// Package clusterflags adds the flags that select a cluster or its objects, with their shell completion, so that they are
// the same for every command.
package clusterflags

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// completionTimeout bounds how long shell completion waits for a cluster.
const completionTimeout = 3 * time.Second

// AddKubeconfig adds --kubeconfig and --kubeconfig-context. If persistent, they also apply to subcommands.
func AddKubeconfig(cmd *cobra.Command, k *management.Kubeconfig, persistent bool) {
	flags := cmd.Flags()
	if persistent {
		flags = cmd.PersistentFlags()
	}
	flags.StringVar(&k.Path, "kubeconfig", "", "Kubeconfig `file` of the management cluster. Defaults to the one that kubectl uses")
	flags.StringVar(&k.Context, "kubeconfig-context", "", "The kubeconfig `context` to use. Defaults to the current context")
	flags.StringVar(&k.Context, "context", "", "Same as --kubeconfig-context, as kubectl calls it")
	for _, name := range []string{"kubeconfig-context", "context"} {
		completeContexts(cmd, name, k)
	}
}

// AddTarget adds --to-kubeconfig and --to-kubeconfig-context, the cluster that a command writes to.
func AddTarget(cmd *cobra.Command, k *management.Kubeconfig) {
	cmd.Flags().StringVar(&k.Path, "to-kubeconfig", "", "Kubeconfig `file` of the target management cluster")
	cmd.Flags().StringVar(&k.Context, "to-kubeconfig-context", "", "The kubeconfig `context` of the target. Defaults to the current context")
	completeContexts(cmd, "to-kubeconfig-context", k)
}

func completeContexts(cmd *cobra.Command, flag string, k *management.Kubeconfig) {
	register(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		contexts, err := management.Kubeconfig{Path: k.Path}.Contexts()
		return names(contexts, err)
	})
}

// AddNamespace adds --namespace, the namespace of a workload cluster.
func AddNamespace(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, value *string) {
	cmd.Flags().StringVarP(value, "namespace", "n", "",
		"The `namespace` of the workload cluster. Defaults to the kubeconfig's current namespace")
	CompleteNamespaces(cmd, f, k, "namespace")
}

// CompleteNamespaces completes an existing flag with the namespaces of the cluster.
func CompleteNamespaces(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, flag string) {
	register(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return list(cmd.Context(), f, *k, corev1.SchemeGroupVersion.String(), "NamespaceList")
	})
}

// ClusterNames returns a completion function for commands whose only argument is the name of a Cluster; namespace points
// to the value of the command's namespace flag.
func ClusterNames(f *factory.Factory, k *management.Kubeconfig, namespace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return listNamespaced(cmd.Context(), f, k, *namespace, clusterv1beta1.GroupVersion.String(), "ClusterList")
	}
}

// Names returns a completion function for commands whose only argument is the name of an object; namespace points to the value of the
// command's namespace flag.
func Names(f *factory.Factory, k *management.Kubeconfig, namespace *string, kind schema.GroupVersionKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return listNamespaced(cmd.Context(), f, k, *namespace, kind.GroupVersion().String(), kind.Kind+"List")
	}
}

// CompleteValues completes an existing flag with fixed values.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	register(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return names(values, nil) })
}

// CompleteWith completes an existing flag with the values that a function returns within a short time; an error means none. args are the
// arguments before the flag, and typed is the beginning of the value.
func CompleteWith(cmd *cobra.Command, flag string, values func(ctx context.Context, args []string, typed string) ([]string, error)) {
	register(cmd, flag, func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return names(values(ctx, args, typed))
	})
}

// FirstArgument returns a completion function for commands whose first argument is one of the values that a function returns within a short
// time; an error means none.
func FirstArgument(values func(ctx context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return names(nil, nil)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return names(values(ctx))
	}
}

// CompleteWithFiles completes an existing flag with the names of files.
func CompleteWithFiles(cmd *cobra.Command, flag string) {
	register(cmd, flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

// CompleteClusters completes an existing flag with the names of Clusters.
func CompleteClusters(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, namespace *string, flag string) {
	complete := ClusterNames(f, k, namespace)
	register(cmd, flag, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, nil, typed)
	})
}

// Resources returns a completion function for arguments of the form type/name; kinds maps types to the objects that
// complete them, and namespace points to the value of the command's namespace flag.
func Resources(
	f *factory.Factory, k *management.Kubeconfig, namespace *string, kinds map[string]schema.GroupVersionKind,
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		word, _, named := strings.Cut(strings.ToLower(typed), "/")
		if !named {
			var prefixes []string
			for _, t := range slices.Sorted(maps.Keys(kinds)) {
				prefixes = append(prefixes, t+"/")
			}
			return prefixes, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		kind, ok := kinds[word]
		if !ok {
			return names(nil, nil)
		}
		found, directive := listNamespaced(cmd.Context(), f, k, *namespace, kind.GroupVersion().String(), kind.Kind+"List")
		for i, name := range found {
			found[i] = word + "/" + name
		}
		return found, directive
	}
}

// OneName accepts one argument, the name of a Cluster.
func OneName(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("the cluster name is required: see `%s --help`", cmd.CommandPath())
	case 1:
		return nil
	default:
		return fmt.Errorf("expected one cluster name, got %d (%s): see `%s --help`", len(args), strings.Join(args, ", "), cmd.CommandPath())
	}
}

// NoArgs accepts no arguments. flag, if not empty, is proposed for what was given instead, such as --infrastructure for the name of a
// provider.
func NoArgs(flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		proposal := ""
		if flag != "" {
			proposal = fmt.Sprintf("did you mean %s %s? Otherwise ", flag, strings.Join(args, ","))
		}
		return fmt.Errorf("unknown argument %q for %q, which takes flags alone: %ssee `%s --help`",
			args[0], cmd.CommandPath(), proposal, cmd.CommandPath())
	}
}

// CompleteProviders completes an existing flag with the known providers of a type.
func CompleteProviders(cmd *cobra.Command, f *factory.Factory, flag string, t clusterctlv1.ProviderType) {
	register(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := f.Config(cmd.Context())
		if err != nil {
			return names(nil, err)
		}
		var known []string
		for _, p := range c.Providers {
			if p.Type == t {
				known = append(known, p.Name)
			}
		}
		return names(known, nil)
	})
}

// listNamespaced lists the objects of a namespace, or of the kubeconfig's current one.
func listNamespaced(
	ctx context.Context, f *factory.Factory, k *management.Kubeconfig, namespace, apiVersion, kind string,
) ([]string, cobra.ShellCompDirective) {
	if namespace == "" {
		var err error
		if namespace, err = k.Namespace(); err != nil {
			return names(nil, err)
		}
	}
	return list(ctx, f, *k, apiVersion, kind, client.InNamespace(namespace))
}

func list(
	ctx context.Context, f *factory.Factory, k management.Kubeconfig, apiVersion, kind string, opts ...client.ListOption,
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, err := f.Connect(k)
	if err != nil {
		return names(nil, err)
	}
	found := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	err = cluster.Client.List(ctx, found, opts...)
	var list []string
	for _, item := range found.Items {
		list = append(list, item.Name)
	}
	return names(list, err)
}

// names returns completions; errors must not be printed in the middle of the user's input.
func names(list []string, err error) ([]string, cobra.ShellCompDirective) {
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func register(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		// Cannot fail: the flag has been added before.
		panic(err)
	}
}

// CompleteConfigMaps completes an existing flag with the ConfigMaps of a namespace.
func CompleteConfigMaps(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, namespace *string, flag string) {
	register(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return listNamespaced(cmd.Context(), f, k, *namespace, corev1.SchemeGroupVersion.String(), "ConfigMapList")
	})
}

// installed returns the names of the installed providers of a type.
func installed(ctx context.Context, f *factory.Factory, k management.Kubeconfig, t clusterctlv1.ProviderType) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	cluster, err := f.Connect(k)
	if err != nil {
		return nil, err
	}
	have, err := inventory.Read(ctx, cluster.Client)
	var list []string
	for _, p := range have.OfType(t) {
		list = append(list, p.ProviderName)
	}
	return list, err
}

// AddKnownProviders adds the flags that select providers to install, with their completion. form is how a provider is written, for
// example "name or name:version". If persistent, they also apply to subcommands.
func AddKnownProviders(cmd *cobra.Command, f *factory.Factory, s *choose.Selection, form string, persistent bool) {
	flags := cmd.Flags()
	if persistent {
		flags = cmd.PersistentFlags()
	}
	flags.StringVar(&s.Core, "core", "", "Core `provider`, as "+form+". The first run defaults to the latest version of cluster-api")
	flags.StringSliceVarP(&s.Infrastructure, "infrastructure", "i", nil, "Comma-separated infrastructure `providers`, as "+form)
	flags.StringSliceVarP(&s.Bootstrap, "bootstrap", "b", nil, "Bootstrap `providers`. The first run defaults to kubeadm; use - for none")
	flags.StringSliceVarP(&s.ControlPlane, "control-plane", "c", nil,
		"Control plane `providers`. The first run defaults to kubeadm; use - for none")
	flags.StringSliceVar(&s.IPAM, "ipam", nil, "IPAM `providers`")
	flags.StringSliceVar(&s.RuntimeExtension, "runtime-extension", nil, "Runtime extension `providers`")
	flags.StringSliceVar(&s.Addon, "addon", nil, "Add-on `providers`")
	for _, t := range packages.Types() {
		CompleteProviders(cmd, f, packages.Word(t), t)
	}
}

// AddProviders adds the flags that select installed providers of the cluster k, with their completion. form is how a provider is
// written, for example "name:version".
func AddProviders(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, s *choose.Selection, form string) {
	flags := cmd.Flags()
	flags.StringVar(&s.Core, "core", "", "Core `provider`, as "+form)
	flags.StringSliceVarP(&s.Infrastructure, "infrastructure", "i", nil, "Comma-separated infrastructure `providers`, as "+form)
	flags.StringSliceVarP(&s.Bootstrap, "bootstrap", "b", nil, "Bootstrap `providers`")
	flags.StringSliceVarP(&s.ControlPlane, "control-plane", "c", nil, "Control plane `providers`")
	flags.StringSliceVar(&s.IPAM, "ipam", nil, "IPAM `providers`")
	flags.StringSliceVar(&s.RuntimeExtension, "runtime-extension", nil, "Runtime extension `providers`")
	flags.StringSliceVar(&s.Addon, "addon", nil, "Add-on `providers`")
	for _, t := range packages.Types() {
		CompleteInstalled(cmd, f, k, t)
	}
}

// CompleteInstalled completes an existing flag, which is named like the type, with the installed providers of the cluster k.
func CompleteInstalled(cmd *cobra.Command, f *factory.Factory, k *management.Kubeconfig, t clusterctlv1.ProviderType) {
	register(cmd, packages.Word(t), func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return names(installed(cmd.Context(), f, *k, t))
	})
}
