package memdynamo

// project is the part of an item a projection asks for: all of it without one.
func (b *bound) project(attrs []attr) []attr {
	if b == nil {
		return attrs
	}
	return b.projectTo(attrs, b.paths)
}

// projected is the names of the attributes that a projection leads into.
func (b *bound) projected() []string {
	names := make([]string, len(b.paths))
	for i, p := range b.paths {
		names[i] = p[0].resolve(b.names)
	}
	return names
}

// projectTo keeps of a map what the paths lead to, in the map's own order.
func (b *bound) projectTo(attrs []attr, paths []path) []attr {
	out := make([]attr, 0, len(paths))
	for i := range attrs {
		v := b.pick(attrs[i].value, paths, func(s *step) bool {
			return s.index < 0 && s.resolve(b.names) == attrs[i].name
		})
		if v != nil {
			out = append(out, attr{attrs[i].name, v})
		}
	}
	return out
}

// pick is what remains of one element: all of it if a path ends there, what
// the paths through it lead to, or nil.
func (b *bound) pick(v value, paths []path, here func(*step) bool) value {
	var through []path
	for _, p := range paths {
		if !here(&p[0]) {
			continue
		}
		if len(p) == 1 {
			return v
		}
		through = append(through, p[1:])
	}
	if through == nil {
		return nil
	}
	switch v := v.(type) {
	case mapValue:
		if m := b.projectTo(v, through); len(m) > 0 {
			return mapValue(m)
		}
	case listValue:
		var l listValue
		for i, e := range v {
			if e := b.pick(e, through, func(s *step) bool { return s.index == i }); e != nil {
				l = append(l, e)
			}
		}
		if len(l) > 0 {
			return l
		}
	}
	return nil
}
