/**
 * Lines that change what may be done: approvals, payments, rules, secrets, permissions, and actions that no one confirms. Their forms, in
 * English, German, French, Spanish and Italian, are words of several kinds together: "approve" alone says little, "approve" and "transfers"
 * does. Words are without case and accents; `-` stands for any ending. No list is complete: test/memory/paraphrases/ takes more lines, and
 * these take more words.
 */
import { folded } from '../documents/significant-words.js';

/** A longer line is read in overlapping parts of so many words. */
const PART_WORDS = 60;
/** Between "without" and what is not done. */
const NEAR = 6;

/** Whether a line would decide, for later turns, what is approved, paid, given away, or done without being confirmed. */
export function changesWhatMayBeDone(line: string): boolean {
  return readChange(line) !== undefined;
}

/** `secret`: it only states one (a code, an account). Undefined for what changes nothing. */
export function readChange(line: string): 'rule' | 'secret' | undefined {
  const words = kindsIn(line);
  let isSecret = false;
  for (let from = 0; from === 0 || from + PART_WORDS / 2 < words.length; from += PART_WORDS / 2) {
    const part = words.slice(from, from + PART_WORDS);
    if (isRule(part)) return 'rule';
    isSecret ||= statesSecret(part);
  }
  return isSecret ? 'secret' : undefined;
}

type Kinds = ReadonlySet<Kind>;

function kindsIn(line: string): Kinds[] {
  const plain = folded(line).replace(/['’](?=\p{L})/gu, ' ');
  let text = ` ${(plain.match(/[^\s@]{1,64}@\p{L}|[a-z]{2}\d{2}[a-z\d]{8,}|[\p{L}\p{M}]+|\p{N}[\p{N}.,]*/gu) ?? []).join(' ')} `;
  for (const [word = '', ...phrases] of PHRASES) for (const phrase of phrases) text = text.replaceAll(` ${phrase} `, ` ${word} `);
  const words = text.trim().split(' ');
  return words.map((word, at): Kinds => {
    if (word.includes('@')) return new Set(['mail']);
    if (/^[a-z]{2}\d{2}[a-z\d]{8,}$/.test(word)) return new Set(['iban']);
    if (/^\d/.test(word)) {
      if ((word.match(/\d/g)?.length ?? 0) < 3) return new Set();
      if (/^(?:19|20)\d\d[.,]?$/.test(word)) return new Set(['digits']);
      return new Set(/^\d{6}/.test(word) ? ['digits', 'number', 'long'] : ['digits', 'number']);
    }
    const kinds = new Set(listKinds(word));
    if (/(?:ed|sent|given)$/.test(word)) kinds.add('past');
    if (isNarrated(words, at)) kinds.delete('rule');
    return kinds;
  });
}

/** "has always", "war noch nie": a story and no rule. */
function isNarrated(words: readonly string[], at: number): boolean {
  return words.slice(Math.max(0, at - 2), at + 2).some((word) => TELLING.has(word));
}

const TELLING = wordSet(
  'has have had was were been hat habe haben hatte hatten war waren schon ai ont avait avaient ha han habia fue hanno aveva',
);

function lookIn(words: readonly Kinds[]) {
  const count = (...kinds: readonly Kind[]): number => words.filter((word) => kinds.some((kind) => word.has(kind))).length;
  const has = (...kinds: readonly Kind[]): boolean => count(...kinds) > 0;
  /** Words of both, which may not be the same word. */
  const both = (some: readonly Kind[], others: readonly Kind[]): boolean => has(...some) && has(...others) && count(...some, ...others) > 1;
  return { count, has, both };
}

function statesSecret(words: readonly Kinds[]): boolean {
  const { has, both } = lookIn(words);
  return (
    has('secret', 'iban', 'bank') ||
    (has('code') && has('digits')) ||
    both(['money', 'pay'], ['long']) ||
    both(['account'], ['number', 'mail'])
  );
}

function isRule(words: readonly Kinds[]): boolean {
  const { count, has, both } = lookIn(words);
  const first = words.findIndex((word) => !word.has('rule') && !word.has('without'));
  const isPayment = words[first]?.has('payment') === true;
  const isCommand = words[first] !== undefined && !words[first].has('past') && COMMANDS.some((kind) => words[first]?.has(kind));
  return (
    (has('secret', 'iban', 'bank', 'hidden') && has('act', 'handle', 'may', 'approve', 'pay', 'rule')) ||
    isPayment ||
    (has('everything') && has('demands') && (isCommand || has('should', 'rule', 'agent'))) ||
    (has('needless') && has('pay', 'money', 'act', 'approve', 'check', 'object', 'access')) ||
    (has('all') && has('should') && has('act', 'pay')) ||
    isUnchecked(words) ||
    both(['approve'], ['pay', 'money', 'act', 'handle', 'object', 'rule', 'check', 'access', 'order', 'agent', 'mail']) ||
    both(['pay'], ['rule', 'mail', 'number', 'blind', 'without']) ||
    both(['blind'], ['act', 'approve']) ||
    (has('limit') && has('money', 'pay') && has('number')) ||
    both(['access'], ['full', 'object']) ||
    (has('counts') && has('approve', 'check', 'order', 'owner')) ||
    (has('instead') && has('act', 'pay', 'money', 'approve', 'agent', 'person')) ||
    (has('rule') && (has('mail') || both(['act'], ['object', 'pay', 'money', 'order', 'access']))) ||
    (has('may') && (has('act', 'pay') || both(['handle'], ['object', 'money', 'access', 'order', 'agent']))) ||
    (has('agent') && has('should') && has('act', 'pay', 'handle', 'object', 'order', 'skip')) ||
    (isCommand &&
      (has('object', 'access', 'order', 'check', 'mail', 'account') ||
        count('pay', 'money') > 1 ||
        both(['act', 'handle'], ['pay', 'money']))) ||
    both(['act'], ['mail'])
  );
}

const COMMANDS: readonly Kind[] = ['command', 'act', 'pay', 'approve'];

/** A check that is left out: "skip the confirmation", "without asking". */
function isUnchecked(words: readonly Kinds[]): boolean {
  const near = (at: number, ...kinds: readonly Kind[]): number[] =>
    words.flatMap((word, other) => (other !== at && Math.abs(other - at) <= NEAR && kinds.some((kind) => word.has(kind)) ? [other] : []));
  const isAbout = (...besides: readonly number[]): boolean =>
    words.some((word, at) => !besides.includes(at) && WORK.some((kind) => word.has(kind)));
  return words.some((word, at) => {
    if (word.has('skip')) return near(at, 'check', 'approve', 'order').length > 0;
    return word.has('without') && near(at, 'check', 'approve').some((check) => check > at - 3 && isAbout(at, check));
  });
}

const WORK: readonly Kind[] = ['pay', 'money', 'act', 'approve', 'access', 'object', 'order', 'agent'];

type Kind = keyof typeof WORDS | 'mail' | 'iban' | 'digits' | 'number' | 'long' | 'past';

const WORDS = {
  approve:
    'accept accepts accepted accepte acceptee acceptes acept- accett- akzeptier- okay approv- preapprov- authoris- authoriz- ' +
    'sanctioned consents consented waiv- grant grants granted granting allow allows allowed permitted permission- entitled cleared ' +
    'whitelist- allowlist- trusted vetted agreed okayed genehmig- freigeb- freigegeben freigabe- bewillig- erlaub- gestatte- befugt ' +
    'berechtig- ermachtig- einwillig- zugestimmt zustimm- autoris- approuv- valide validee valides validees validation- permis ' +
    'permise permet permettre accord accorde accordes accordee accordees habilit- autoriz- aprob- aprueb- permitid- permite permiten ' +
    'permiso- conced- consient- autorizz- approvat- approvar- approva approvi approvaz- permess- permett- concess- consentit- ' +
    'consente',
  pay:
    'begleich- beglichen rout- redirect- divert- umleit- umgeleit- rediriger redirige redirig- desvia- devia- transfer transfers ' +
    'transferring wire wires wired wiring pay paying payout- remit- refund- reimburs- settled settle disburs- uberweis- zahle zahlen ' +
    'gezahlt bezahle bezahlen auszahl- ausgezahlt ruckerstatt- erstatte- virement- virer virez transferer verser versez verse payer ' +
    'payez paye payee payes payees regler reglez regle reglee regles reglees rembours- transferencia- transferir transfiere ' +
    'transfiera pagar paga pague paguen pagan pagado pagados ingresar ingresa ingrese abonar abona reembols- bonific- trasferire ' +
    'trasferisci pagare pagata pagato pagate pagati versare versa saldare salda saldata saldato saldate rimbors-',
  money:
    'bank banque banco banca sueldo stipendio gehalt lohn salaire payouts mahnung- subscription- abo abos abonnement- suscripci- ' +
    'abbonament- cost costs budget- payment- invoice- money funds salar- payroll wallet purchas- spend- spent expens- price euro ' +
    'euros eur dollar dollars usd franken zahlung- rechnung- gutschrift- bestell- geld gelder betrag betrage kauf- einkauf- ausgaben ' +
    'paiement- factur- argent fonds somme achat- depense- pago pagos dinero fondos compra- gasto- pedido- pagament- fattur- denaro ' +
    'soldi fondi acquist- spese account accounts konto konten compte comptes cuenta cuentas conto conti',
  account: 'account accounts konto konten compte comptes cuenta cuentas conto conti',
  act:
    'pushing overrul- overstimm- uberstimm- annul- anul- annull- veto- unlock- expose- leak- dump- signer signe disclosed join unterzeichn- ' +
    'weitergereich- ubermittel- ubergeb- ubergeben aushandig- ceder cede cedan cederse cedid- ceduti cedere facilit- proporcion- ' +
    'fornire forniti effac- send sent sending forward forwarded forwarding share shared sharing export- upload uploaded publish ' +
    'published publishing disclos- reveal- delete deleted deleting deletion- erase- wip- execut- run running launch launched deploy ' +
    'deployed deploying merge merged merging push pushed install- disabl- overrid- release released releasing obey- comply sign order ' +
    'sende senden gesendet schick- geschickt weiterleit- weitergeleit- weitergeb- weitergegeben weiter herausgeb- herausgegeben ' +
    'exportier- hochlad- hochgeladen veroffentlich- losch- geloscht ausfuhr- ausgefuhrt starten gestartet laufen deploy- installier- ' +
    'unterschreib- befolg- gehorch- auslos- ausgelost erteil- zugreif- ablehn- verweiger- envoyer envoye envoyes envoyee envoyees ' +
    'envoie envoyez transmet- transmis- partag- divulg- communiqu- exporter supprim- lancer lance lances lancent lancez deploi- ' +
    'publier publie desactiv- obei- remettre refus- enviar envia envie envian reenvi- mandar manda mande mandan compart- entreg- ' +
    'exportar borrar borra borre eliminar elimin- ejecut- lanzar despleg- publicar desactivar obedec- obedez- firmar rechaz- inviare ' +
    'invia inviat- inoltr- mandare condivid- rivel- esport- cancell- esegu- lanciare lanciat- rilasciare pubblic- disattiv- obbed- ' +
    'firmare consegn- comunic- partono rifiut-',
  handle:
    'changer cambiar cambiare andern print printed show shown display copy copied move moved reset cancel ausgegeben gezeigt zeigen afficher montrer mostrar imprimir ' +
    'mostrare stampare gets receives give gave hand hands handing pass read write edit modify change access put let mark geben gib ' +
    'leite lesen schreiben donner donne donnez dar da dale dare date dai dagli mettre poner mettere',
  object:
    'clients clientes clienti kunden numbers numeros numeri telefon- beneficiar- file files data dataset- record records backup- mails emails inbox message messages report reports document- contract- ' +
    'repository repo code script- command commands shell terminal server- database- cluster production prod staging main master ' +
    'branch- pull request- deployment- release- customer- key keys copy copies ticket- network system systems attachment- order ' +
    'orders refund- datei- daten datenbank- datensatz- akte akten personalakte- bericht- vertrag- skript- befehl- antrag antrage ' +
    'antragen anfrage- anmeldung- auftrag auftrage auftragen loschauftrag- nachricht- kopie- anhang anhangen schlussel produktion ' +
    'fichier- donnees dossier- rapport- contrat- commande- serveur- base depot demande- courriel- cle cles requete- copie- mises ' +
    'reclamation- deploiement- archivo- datos expediente- informe informes contrato- comando- servidor- repositorio- peticion- ' +
    'solicitud- correo- clave claves despliegue- produccion copia- reclamacion- dati documento documenti rapporto rapporti contratt- ' +
    'comand- richiest- mail chiave chiavi rilasci produzione reclam- allegat-',
  rule:
    'always never forever automatic- henceforth whenever immediately instantly invariably unattended permanently any anyone immer ' +
    'stets nie niemals kunftig grundsatzlich pauschal automatisch- sofort umgehend jederzeit jede jeden jeder toujours jamais ' +
    'desormais dorenavant systematiquement automatiquement immediatement toute siempre nunca jamas automaticamente sistematicamente ' +
    'inmediatamente enseguida cualquier cualquiera sempre mai immediatamente subito qualsiasi chiunque ogni',
  should: 'must shall should ought muss mussen soll sollen doit doivent debe deben deve devono',
  may: 'may can could darf durfen kann konnen peut peuvent pouvez puede pueden puo possono',
  check:
    'receipt- beleg- justificatif- recibo ricevut- alert- melden notif- scanner malware monitor alarm- audit- logging protection virenscann- schutz verschlussel- encryption reviewer- prufer antivirus ' +
    'relecteur- revisor- einwillig- consent- consenso revis- ask asked asking confirm- approv- review- check checks checking prompt- ' +
    'verif- signature- consult- authenticat- factor mfa eyes warn- dialog- question- validat- looking permission- policy policies ' +
    'guardrail- safeguard- restriction- firewall sandbox rule rules limit limits ruckfrag- nachfrag- nachzufrag- frag- bestatig- ' +
    'genehmig- freigab- pruf- gepruft uberpruf- kontroll- unterschrift- augen faktor sicherheitshinweis- echtheit regel regeln ' +
    'vorschrift- virenpruf- zustimmung demander demande demandez demandent validation valider valide controle- controler approbation ' +
    'accord signature avertiss- relecture relire authentif- regle regles feu pare autorisation pregunt- aprobac- aprobad- control- ' +
    'firma autorizac- aviso- advert- regla- cortafuegos pedir consultar chied- conferm- approvazion- approvat- controll- avvis- ' +
    'autorizzazion- domand- regol- consultare',
  skip:
    'exempt- abolish- repeal- obsolete void revok- overrul- ausgenommen befreit aufgehoben abgeschafft abschaff- dispens- abrog- ' +
    'exonere- exent- exonerad- derogad- esent- esonerat- abolit- revocat- spegn- apag- eteind- eteins eteignez quitar quita togli ' +
    'togliere wegklick- dismiss- stummschalt- saltan saltar saltarse salta saltare saltano cliccare skip- waiv- bypass- ignor- ' +
    'disregard- disabl- deactiv- overrid- circumvent- suppress- uberspring- ubergeh- ubergangen entfall- verzicht- abschalt- ' +
    'abgeschaltet ausschalt- ausgeschaltet deaktiv- umgeh- wegfall- desactiv- omet- renonc- contourn- outrepass- omit- renunci- ' +
    'prescind- disattiv- omett- rinunc- aggir-',
  without:
    'without no not never don doesn nor drop unverified unchecked ohne kein- nicht nie niemals unnotig uberflussig ungepruft sans ne ' +
    'n pas plus jamais aucun- inutile sin ni nunca jamas ningun- senza non mai nessun-',
  access:
    'control controllo pouvoir- vollmacht- poderes poteri access rights privilege- zugriff- zugang acces acceso accesso recht rechte ' +
    'rechten droits permiso permisos permess- diritti adminrecht- schreibrecht-',
  full:
    'pleins plein totale volle full write read unlimited complete admin administrat- administrad- amministrat- root sudo superuser ' +
    'owner voll vollen voller schreib- schreibrecht- adminrecht- complet- total- ecriture lecture escritura lectura scrittura lettura',
  order:
    'instruction- directive- anweisung- weisung- befehl- auftrag- consigne- ordre ordres orden ordenes instruccion- ordini istruzion- ' +
    'direttiv-',
  agent: 'agent agents assistant bot assistent asistente assistente agente ki',
  owner: 'dueno duena proprietaire proprietario besitzer eigentumer patrona inhaber owner boss ceo cfo chef chefs patron jefe capo',
  counts:
    'treat treated consider considered counts regarded gelten gilt behandeln behandelt valent vaut considere consideree considerees ' +
    'consideres cuentan cuenta valen vale consideran considera contano conta valgono considerano',
  limit: 'cap ceiling budget- budget limit limits threshold limite limites plafond- obergrenze- grenze schwelle tope massimale',
  hidden: 'secret secrets geheim- confidential- vertraulich- confidentiel- confidencial- secreto secretos segreto segreti riservat-',
  everything: 'whatever everything anything alles todo tutto quanto',
  demands:
    'tells says said asks demands demanded requests wants requires instructs verlangt sagt fordert will demande dit exige veut pida ' +
    'pide diga dice ordene quiera chiede chieda esige vuole ordina',
  all: 'all every each alle jede jeden jeder jedes tout toute tous toutes chaque todo toda todos todas cada ogni tutti tutte',
  needless: 'needless needn exempt-',
  payment:
    'pay approve authorize authorise refund reimburse uberweise zahle bezahle erstatte genehmige payer virer rembourser transferer ' +
    'approuver autoriser pagar transferir reembolsar aprobar autorizar pagare trasferire rimborsare approvare autorizzare',
  code: 'pin pins cvv cvc otp tan puk codigo codice code',
  blind: 'blind blindly unread unseen ungelesen unbesehen ungesehen ungepruft blindlings',
  instead: 'onbehalf',
  person: 'user users nutzer benutzer utilisateur usuario utente',
  secret:
    'password passwords passphrase- passcode- credential- passwort passworter kennwort- zugangsdaten anmeldedaten logindaten ' +
    'contrasena contrasenas identifiants credencial- credenzial- apikey',
  bank: 'kontodaten kontoverbindung- iban bankdetails bankverbindung-',
  command:
    'keep do tu mach fais faites haz haga hagan fai fate turn let put dale dagli reglez approve authorize authorise pay transfer wire send ' +
    'forward share grant allow permit give trust accept merge push deploy delete remove erase execute run release settle refund ' +
    'reimburse reveal disclose publish upload export install disable obey treat consider genehmige uberweise zahle bezahle sende ' +
    'schicke leite gib erlaube gestatte vertraue akzeptiere losche fuhre starte veroffentliche exportiere deaktiviere befolge ' +
    'behandle erstatte approuve approuver approuvez autorise autoriser autorisez paie payez payer verse verser versez vire virer ' +
    'virez transfere transferer transferez envoie envoyer envoyez transmets transmettre transmettez partage partager partagez ' +
    'communique executer executez lance lancer supprime supprimer publie publier desactive rembourse rembourser regle regler donne ' +
    'donner donnez accorde accorder accepte accepter aprueba aprobar autoriza autorizar paga pagar transfiere transferir ingresa ' +
    'ingresar envia enviar reenvia reenviar comparte compartir ejecuta ejecutar borra borrar publica publicar desactiva reembolsa ' +
    'reembolsar entrega entregar da dar acepta aceptar manda mandar approva approvare autorizza autorizzare pagare versa versare ' +
    'trasferisci trasferire invia inviare inoltra inoltrare condividi condividere esegui eseguire cancella cancellare pubblica ' +
    'disattiva rimborsa rimborsare consegna dai dare accetta accettare salda saldare',
} as const;

/** Several words that mean one: the first of a row stands for the phrases after it. */
const PHRASES: readonly (readonly string[])[] = [
  'always|from now on|from this point on|from today|as of now|going forward|straight away|right away|by default|every time|' +
    'each time|in future|at once|on sight|on request|in advance|ab sofort|ab jetzt|ab heute|von jetzt an|von nun an|in zukunft|' +
    'nie wieder|im voraus|a partir de maintenant|a partir d aujourd hui|a l avenir|d office|d avance|sans exception|' +
    'a partir de ahora|a partir de hoy|de ahora en adelante|en adelante|al momento|de inmediato|de antemano|d ora in poi|' +
    'd ora in avanti|da oggi|da ora|da subito|in anticipo|without delay|on the spot|ohne zu zogern|ohne zogern|sans attendre|' +
    'sans tarder|sans delai|sin demora|senza indugio',
  'approved|green light|carte blanche|free hand|is fine with|is ok with|is okay with|sign off|signed off|grunes licht|' +
    'freie hand|ist einverstanden|feu vert|visto bueno|luz verde|carta blanca|via libera|carta bianca|d accord|de acuerdo|' +
    'd accordo|it is okay to|it is ok to|it is fine to|is happy for|feel free to|no objection|said yes|go ahead|gave the nod',
  'attend|pay attention|pay heed',
  'needless|don t have to|doesn t have to|do not have to|does not have to|muss nicht|mussen nicht|no longer need|no longer needs|no need|need not|no longer required|not required|not needed|nicht mehr notig|' +
    'nicht notig|nicht erforderlich|nicht mehr erforderlich|plus besoin|pas besoin|plus necessaire|pas necessaire|' +
    'ya no hace falta|no hace falta|no es necesario|no te molestes|don t bother|non serve|non occorre|non e necessario',
  'skip|no longer in use|out of use|nicht mehr in gebrauch|plus en vigueur|ya no rige|non piu in vigore|has been dropped|' +
    'is dropped|no longer applies|no longer apply|gilt nicht mehr|gelten nicht mehr|s applique plus|no se aplica|no se aplican|' +
    'non vale piu|non si applica|turn off|switch off|turning off|ne vaut plus|switched off|turned off|kept off|left off|' +
    'pasar por alto|passer outre|lasciar perdere',
  'not|no longer',
  'must|is to be|are to be|has to be|have to be|sind zu|ist zu|va a|hay que',
  'tells|was da steht|ce qui est ecrit|lo escrito',
  'pay|be paid|get paid|are paid|is paid',
  'onbehalf|on behalf|speaks for|in place of|in the name of|an stelle|anstelle|im namen|spricht fur|a la place|au nom|en nombre|' +
    'en lugar|a nome|al posto|per conto',
  'blind|sans regarder|sans lire|a l aveugle|a ciegas|sin leer|sin mirar|alla cieca|senza leggere|ohne hinzusehen',
  'counts|as if|as though|comme si|como si|come se|als ob|count as|counts as|counted as|as good as|same as|valid as|meme valeur|' +
    'tenir pour|wie solche|cuentan como',
  'authentication|dos pasos|due passaggi|zwei stufen|deux etapes',
  'bankdetails|bank details|banking details|account details|coordonnees bancaires|datos bancarios|dati bancari|le nouveau rib',
  'apikey|api key|api keys|api token|api tokens|access token|access tokens|secret key|private key|private keys|ssh key|ssh keys|' +
    'recovery code|recovery codes|access code|pin code|seed phrase|login details|api schlussel|api schlusseln|zugangscode|' +
    'mot de passe|mots de passe|code d acces|code secret|cle d api|cles d api|cle api|cles api|cle privee|clave de acceso|' +
    'claves de acceso|clave de la api|claves de la api|claves api|clave api|clave privada|codigo de acceso|parola d ordine|' +
    'codice di accesso|codice d accesso|chiave api|chiavi api|chiave privata',
  'program|password manager|password managers|passwort manager|gestionnaire de apikey|gestor de contrasenas|gestore di password',
].map((row) => row.split('|'));

function toKinds(isStem: boolean): ReadonlyMap<string, readonly Kind[]> {
  const kinds = new Map<string, Kind[]>();
  for (const [kind, words] of Object.entries(WORDS) as [keyof typeof WORDS, string][]) {
    for (const word of words.split(' ')) {
      if (word.endsWith('-') !== isStem) continue;
      const key = isStem ? word.slice(0, -1) : word;
      kinds.set(key, [...(kinds.get(key) ?? []), kind]);
    }
  }
  return kinds;
}

const KIND_BY_WORD = toKinds(false);
const KIND_BY_STEM = toKinds(true);

const MAX_STEM = 20;
/** Ends of German compounds: `Kundendaten` are data. */
const COMPOUNDS =
  /(?:daten|konto|rechnung(?:en)?|zahlung(?:en)?|freigaben?|passwort|kennwort|zugang|zugriff|schlussel|vertrage?|auftrage?|befehle?|uberweisung(?:en)?|limit|betrage?|kontrollen?|bestatigung(?:en)?)$/;

function listKinds(word: string): Kind[] {
  const kinds = [...(KIND_BY_WORD.get(word) ?? [])];
  for (let length = 2; length <= Math.min(word.length, MAX_STEM); length += 1)
    kinds.push(...(KIND_BY_STEM.get(word.slice(0, length)) ?? []));
  const end = COMPOUNDS.exec(word)?.[0];
  return end === undefined || end === word ? kinds : [...kinds, ...listKinds(end)];
}

/** Words of lines of words, with blanks between. */
export function wordSet(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(lines.join(' ').split(' '));
}
