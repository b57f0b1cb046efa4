/** A view, loaded when it is first shown. What it throws stays in its place. */
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../ui/problem.js';
import { loadView, type ViewModule } from '../views/table.js';

export function ViewSlot({ name, of }: { readonly name: string; readonly of: string }): JSX.Element {
  const [loaded, setLoaded] = useState<{ readonly name: string; readonly module?: ViewModule; readonly error?: unknown }>({ name });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isLeft = false;
    loadView(name).then(
      (module) => !isLeft && setLoaded({ name, module }),
      (error: unknown) => !isLeft && setLoaded({ name, error }),
    );
    return () => void (isLeft = true);
  }, [name, tries]);
  if (loaded.name !== name) return <div class="empty" aria-busy="true" />;
  if (loaded.error !== undefined) return <Problem error={loaded.error} again={() => setTries(tries + 1)} />;
  if (loaded.module === undefined) return <div class="empty" aria-busy="true" />;
  const Shown = loaded.module.default;
  return (
    <Guard key={`${name} ${of}`}>
      <Shown of={of} />
    </Guard>
  );
}

class Guard extends Component<{ readonly children: ComponentChildren }, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  override componentDidCatch(error: unknown): void {
    this.setState({ error });
  }

  render(): ComponentChildren {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div class="view-pad">
        <Problem error={this.state.error} again={() => this.setState({ error: undefined })} />
      </div>
    );
  }
}
