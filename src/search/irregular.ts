/** English forms that no stemmer brings together: `went` is looked for as `go`. */
const FORMS = `
be was were been am is are|become became|begin began begun|bite bit bitten|blow blew blown|break broke broken|bring brought|build built
buy bought|catch caught|choose chose chosen|come came|cut|deal dealt|do did done does|draw drew drawn|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown|forbid forbade forbidden|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|hang hung|have had has
hear heard|hide hid hidden|hold held|keep kept|know knew known|lay laid|lead led|leave left|lend lent|lie lay lain|light lit|lose lost
make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|sleep slept|speak spoke spoken
spend spent|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|take took taken
teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept
win won|write wrote written|child children|person people|man men|woman women|foot feet|tooth teeth|mouse mice|goose geese
life lives|wife wives|knife knives|leaf leaves|wolf wolves|shelf shelves|half halves|good better best|bad worse worst`;

export const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  FORMS.trim()
    .split(/[|\n]/)
    .flatMap((line) => {
      const [base = '', ...forms] = line.trim().split(' ');
      return forms.map((form) => [form, base] as const);
    })
    // Each of these is a word of its own more often than a form.
    .filter(([form]) => !['lay', 'left', 'found', 'lives', 'leaves', 'saw', 'felt', 'lit'].includes(form)),
);
