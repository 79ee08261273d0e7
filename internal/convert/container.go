package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func (c *cronJob) pod(spec object) {
	c.rest("Pod", spec, "containers volumes")
	if spec.get("activeDeadlineSeconds").is() {
		d := c.seconds(spec, "activeDeadlineSeconds")
		if c.timeout == 0 || d < c.timeout {
			c.timeout = d
		}
	}
	containers := spec.get("containers").items()
	if len(containers) == 0 {
		c.lose("it has no container")
		return
	}
	if n := len(containers); n > 1 {
		c.note("containers", "it has %d containers; this is the first, %q", n, containers[0].get("name").text())
	}
	if n := len(spec.get("initContainers").items()); n > 0 {
		c.note("containers", "its init containers are not run: %d", n)
	}
	if volumes := spec.get("volumes").items(); len(volumes) > 0 {
		var names []string
		for _, v := range volumes {
			names = append(names, v.get("name").text())
		}
		c.note("volumes", "its volumes are not mounted here: %s", strings.Join(names, ", "))
	}
	c.container(containers[0])
}

// container turns a container into a command.
func (c *cronJob) container(o object) {
	image := o.get("image").text()
	c.note("container image", "it ran in image %s; here the program must be in Solotick's own image, "+
		"or become an endpoint of the app: http: {url: http://127.0.0.1:8080/…}", image)
	c.rest("container", o, "command args env resources")
	limits := o.get("resources", "limits") // requests are for the scheduler of the cluster
	for _, key := range limits.keys() {
		c.note("limits", "no limit here: %s: %s", key, limits.get(key).text())
	}
	c.environment(o)
	command, args := o.get("command"), o.get("args")
	for _, list := range []object{command, args} {
		if list.is() && list.items() == nil && !list.empty() {
			c.lose("command and args must be lists")
			return
		}
	}
	c.dir = c.expand(c.word(o, "workingDir"))
	c.command = nil
	for _, word := range slices.Concat(command.texts(), args.texts()) {
		c.command = append(c.command, c.expand(word))
	}
	if len(command.items()) == 0 {
		// If the args begin with a program, there may be no entrypoint.
		if len(c.command) == 0 || !strings.HasPrefix(c.command[0], "/") {
			c.command = slices.Insert(c.command, 0, "/entrypoint/of/the/image")
		}
		c.lose("it runs the entrypoint of image %s, if it has one, which the manifest does not name: "+
			"put it first in command", image)
	}
}

// environment reads the variables. If a value is outside of the manifest, Solotick's own environment must have the
// variable.
func (c *cronJob) environment(o object) {
	var elsewhere []string
	for _, v := range o.get("env").items() {
		name, value := v.get("name").text(), v.get("value").text()
		from := v.get("valueFrom")
		switch {
		case from.is():
			c.elsewhere[name] = source(from)
			elsewhere = append(elsewhere, fmt.Sprintf("%s (%s)", name, source(from)))
		case !variableName.MatchString(name), strings.HasPrefix(name, "SOLOTICK_"), name == "TRACEPARENT":
			c.note("environment", "variable %s cannot be set by a table", name)
		default:
			value = c.expand(value) // before it is known itself
			c.env = with(c.env, variable{name, value})
		}
	}
	for _, v := range o.get("envFrom").items() {
		elsewhere = append(elsewhere, "all of "+source(v))
	}
	if len(elsewhere) > 0 {
		c.note("variables from elsewhere", "give Solotick's container these variables, which commands inherit: %s",
			strings.Join(elsewhere, ", "))
	}
}

// source says in few words where a variable's value comes from.
func source(from object) string {
	for _, key := range from.keys() {
		of := from.get(key)
		name := of.get("name").text()
		if field := of.get("fieldPath").text(); field != "" {
			name = field
		}
		switch what := strings.TrimSuffix(strings.TrimSuffix(key, "Ref"), "Key"); what {
		case "secret", "configMap", "field", "resourceField":
			if k := of.get("key").text(); k != "" {
				name += ", key " + k
			}
			return what + " " + name
		}
	}
	return "elsewhere"
}

// reference matches a variable that Kubernetes fills in; $$( is a literal $(.
var reference = regexp.MustCompile(`\$\$|\$\([-._a-zA-Z][-._a-zA-Z0-9]*\)`)

// expand fills in the variables of the manifest, as Kubernetes does. It leaves undefined ones as they are, such as a
// shell's $(date).
func (c *cronJob) expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		name := ref[2 : len(ref)-1]
		for _, v := range c.env {
			if v.name == name {
				return v.value
			}
		}
		if where := c.elsewhere[name]; where != "" {
			c.lose("it needs %s, a variable from %s: give it to Solotick's container and write ${%[1]s} for %[3]s",
				name, where, ref)
		}
		return ref
	})
}
